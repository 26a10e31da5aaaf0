"""``python -m tilewright``: the command line."""

import sys

from tilewright.driver.cli import main

if __name__ == "__main__":
    sys.exit(main())
