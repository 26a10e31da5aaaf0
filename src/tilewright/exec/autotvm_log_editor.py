"""Edit files of AutoTVM's records.

python -m tilewright.exec.autotvm_log_editor --act pick --i LOG [--o FILE]    the best record of each workload
python -m tilewright.exec.autotvm_log_editor --act split --i LOG              one file for each workload
python -m tilewright.exec.autotvm_log_editor --act read --i LOG               print the records
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from tilewright.autotvm.record import encode, load_from_file, pick_best, split_workload


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program."""
    parser = argparse.ArgumentParser(
        prog="autotvm_log_editor", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--act", choices=["read", "pick", "split"], required=True, help="what to do")
    parser.add_argument("--i", dest="source", required=True, help="the file of records")
    parser.add_argument("--o", dest="result", help="the file to write; for pick by default LOG.best.log")
    parser.add_argument("--keep-repeated", action="store_true", help="split: keep repeated configurations")
    given = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    if not Path(given.source).is_file():
        sys.stderr.write(f"there is no file of records at {given.source}\n")
        return 1
    if given.act == "pick":
        pick_best(given.source, given.result or f"{given.source}.best.log")
    elif given.act == "split":
        for name in split_workload(given.source, clean=not given.keep_repeated):
            sys.stdout.write(f"{name}\n")
    else:
        for inp, res in load_from_file(given.source):
            sys.stdout.write(f"{encode(inp, res)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
