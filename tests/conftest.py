"""What holds for every test: checks between passes are on, every tensor ends at a page that cannot be accessed, and a
slow machine fails no property test."""

import os
import subprocess
import sys
from functools import partial

# Read once, when tilewright is imported: so this stands before any import of it.
os.environ["TILEWRIGHT_CHECK"] = "1"

from pathlib import Path

import pytest
from hypothesis import settings

from api_trace import Trace
from tilewright.support.options import guard_pages

# A shared two-core machine stalls for hundreds of milliseconds; a deadline would report that as a failure.
settings.register_profile("tilewright", deadline=None)
settings.load_profile("tilewright")


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--api-trace FILE``: see tools/api_trace.py. ``--update-goldens``: see tests/golden/test_goldens.py.
    ``--guard-pages``: on which side an access outside of a tensor ends the process; see
    docs/decisions/0009-reads-stay-inside.md."""
    parser.addoption(
        "--api-trace", metavar="FILE", type=Path, help="add the names of TVM's interface that are called"
    )
    parser.addoption(
        "--update-goldens", action="store_true", help="write what passes make of the programs in tests/golden"
    )
    parser.addoption(
        "--guard-pages",
        choices=("end", "start", "off"),
        help="put a page that cannot be accessed at this end of tensors; the default is end, unless the variable "
        "TILEWRIGHT_GUARD_PAGES is set",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Watch from the start where it is asked for. The runtime reads the variable with its first tensor."""
    if config.getoption("--guard-pages") or "TILEWRIGHT_GUARD_PAGES" not in os.environ:
        os.environ["TILEWRIGHT_GUARD_PAGES"] = config.getoption("--guard-pages") or "end"
    if config.getoption("--api-trace"):
        config.stash[_TRACE] = Trace()
        config.stash[_TRACE].start()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of memory itself, marked ``unguarded``, run in processes of their own without guard pages."""
    if guard_pages() is None or sys.platform == "win32":
        return
    for item in items:
        if item.get_closest_marker("unguarded") is not None:
            item.runtest = partial(_run_unguarded, item)  # type: ignore[method-assign]


def traced(config: pytest.Config) -> list[str]:
    """The option with which a pytest that a test starts adds to this one's trace."""
    file = config.getoption("--api-trace")
    return [f"--api-trace={file.absolute()}"] if file else []


def _run_unguarded(item: pytest.Item) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--guard-pages", "off"]
    done = subprocess.run(
        [*command, *traced(item.config), item.nodeid],
        cwd=item.config.rootpath,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"without guard pages:\n{done.stdout}\n{done.stderr}"


def pytest_unconfigure(config: pytest.Config) -> None:
    """Write what was seen."""
    if _TRACE in config.stash:
        config.stash[_TRACE].stop(config.getoption("--api-trace"))


_TRACE = pytest.StashKey[Trace]()
