"""JSON Schema of servers: values checked against it, and types of Python made of it."""
