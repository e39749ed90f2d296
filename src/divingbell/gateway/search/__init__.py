"""Search for tools: by words, and by meaning where a model is installed."""
