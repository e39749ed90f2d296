"""The parts that containers of every kind share: a root file system, and a socket to the host."""
