"""``python -m tilewright.driver.tvmc``: the command line, under the name that TVM's documentation uses."""

import sys

from tilewright.driver.cli import main

if __name__ == "__main__":
    sys.exit(main())
