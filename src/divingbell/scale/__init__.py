"""More than one machine: nodes that hold sessions, and the line that leads to each."""
