"""Sentence models that search by meaning can use: the one of the extra, or one on the disk."""
