"""The inside of the sandbox: untrusted by the host, standard library and IPython only.

This package never imports `divingbell`. Only `frames` is imported by both sides.
"""
