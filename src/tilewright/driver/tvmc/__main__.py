"""``python -m tilewright.driver.tvmc``: the command line, by the name that TVM's documents call it."""

import sys

from tilewright.driver.cli import main

if __name__ == "__main__":
    sys.exit(main())
