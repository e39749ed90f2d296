"""The vault: which token stands for which value, kept sealed."""
