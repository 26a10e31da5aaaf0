"""What holds for every test: checks between passes are on, and a slow machine fails no property test."""

import os

# Read once, when tilewright is imported: so this stands before any import of it.
os.environ["TILEWRIGHT_CHECK"] = "1"

from pathlib import Path

import pytest
from hypothesis import settings

from api_trace import Trace

# A shared two-core machine stalls for hundreds of milliseconds; a deadline would report that as a failure.
settings.register_profile("tilewright", deadline=None)
settings.load_profile("tilewright")


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--api-trace FILE``: see tools/api_trace.py. ``--update-goldens``: see tests/golden/test_goldens.py.
    ``--guard-pages``: an access outside of a tensor ends the process; see docs/decisions/0009-reads-stay-inside.md."""
    parser.addoption(
        "--api-trace", metavar="FILE", type=Path, help="add the names of TVM's interface that are called"
    )
    parser.addoption(
        "--update-goldens", action="store_true", help="write what passes make of the programs in tests/golden"
    )
    parser.addoption(
        "--guard-pages",
        choices=("end", "start"),
        help="put a page that cannot be accessed at this end of tensors",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Watch from the start where it is asked for. The runtime reads the variable with its first tensor."""
    if config.getoption("--guard-pages"):
        os.environ["TILEWRIGHT_GUARD_PAGES"] = config.getoption("--guard-pages")
    if config.getoption("--api-trace"):
        config.stash[_TRACE] = Trace()
        config.stash[_TRACE].start()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Write what was seen."""
    if _TRACE in config.stash:
        config.stash[_TRACE].stop(config.getoption("--api-trace"))


_TRACE = pytest.StashKey[Trace]()
