"""`python -m divingbell`: the command."""

import sys

from divingbell.surfaces.cli import main

if __name__ == "__main__":
    sys.exit(main())
