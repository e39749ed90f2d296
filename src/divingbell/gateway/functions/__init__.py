"""Functions of this program as tools: described, called, and what they return made plain."""
