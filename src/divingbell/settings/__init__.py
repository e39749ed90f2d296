"""Settings: one typed tree, the files it is read from, and the policy that it holds."""
