"""An agent: a model that answers people by writing code for a session."""
