"""``tilewright cache``: shows the cache and its size, and clears it."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from tilewright.driver.cli.output import bytes_text, show_json, show_table
from tilewright.support.errors import TilewrightError
from tilewright.support.options import cache_dir

# The folders that Tilewright makes in its cache. Nothing else is ever removed: the variable that names the cache
# may well point at a folder with other things in it.
OWN_ENTRIES = ("runtime", "code", "models", "tuning", "machines")


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser("cache", help="show or clear the cache")
    parser.add_argument(
        "action",
        nargs="?",
        choices=["show", "path", "clear"],
        default="show",
        help="show the contents (the default), print the path, or remove everything",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Show, print the path of, or clear the cache."""
    folder = cache_dir()
    if arguments.action == "path":
        print(folder)
        return 0
    sizes = {name: _size(folder / name) for name in OWN_ENTRIES if (folder / name).exists()}
    if arguments.action == "clear":
        _clear([folder / name for name in sizes])
    if arguments.json:
        show_json({"path": str(folder), "bytes": sizes, "cleared": arguments.action == "clear"})
    elif arguments.action == "clear":
        print(f"cleared {bytes_text(sum(sizes.values()))} from {folder}")
    elif sizes:
        show_table(
            f"cache in {folder}", ["entry", "size"], [[name, bytes_text(sizes[name])] for name in sizes]
        )
    else:
        print(f"the cache in {folder} is empty")
    return 0


def _size(path: Path) -> int:
    """Bytes of a file, or of all files below a folder."""
    if path.is_symlink() or path.is_file():
        return path.lstat().st_size
    return sum(below.lstat().st_size for below in path.rglob("*") if not below.is_dir())


def _clear(entries: list[Path]) -> None:
    """Remove the entries with all they hold."""
    for path in entries:
        try:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        except OSError as problem:
            raise TilewrightError(f"{path} could not be removed: {problem}") from problem
