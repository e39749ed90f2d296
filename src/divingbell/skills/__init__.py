"""Skills: code that was found useful, kept in the Agent Skills format and offered again."""
