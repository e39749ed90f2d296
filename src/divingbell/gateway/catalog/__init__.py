"""All tools of all servers: by name, and as files of Python that code can read."""
