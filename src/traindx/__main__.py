"""`python -m traindx` is the same program as `traindx`."""

import sys

from traindx.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
