"""What containers of every kind need: a root file system, and a door to the host."""
