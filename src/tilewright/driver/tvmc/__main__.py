"""``python -m tilewright.driver.tvmc``: the command line, under the name that TVM's documentation uses.

Its ``tune`` has the options of ``tvmc tune``, those for remote devices among them.
"""

import argparse
import sys
from collections.abc import Sequence

from tilewright.driver.cli import main
from tilewright.driver.tvmc import autotuner
from tilewright.support.errors import TilewrightError


def _tune(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="tvmc")
    autotuner.add_tune_parser(parser.add_subparsers(required=True))
    parsed = parser.parse_args(arguments)
    try:
        code: int = parsed.func(parsed)
    except TilewrightError as problem:
        sys.stderr.write(f"tvmc: {problem.message}\n")
        return 1
    return code


if __name__ == "__main__":
    sys.exit(_tune(sys.argv[1:]) if sys.argv[1:2] == ["tune"] else main())
