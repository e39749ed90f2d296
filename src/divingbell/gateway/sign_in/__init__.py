"""Signing in at remote servers by OAuth."""
