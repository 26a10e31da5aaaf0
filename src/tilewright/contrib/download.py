"""Fetching a model or a picture over the network: ``download`` and ``download_testdata``."""

from __future__ import annotations

import shutil
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tilewright.runtime.failure import failure
from tilewright.support.cbuild import write_beside
from tilewright.support.options import cache_dir

_SCHEMES = ("http", "https", "file")
_TIMEOUT = 30
"""Seconds without an answer."""


def download(
    url: str, path: str | Path, overwrite: bool = False, size_compare: bool = False, retries: int = 3
) -> None:
    """Fetches a file. One that is there already stays, unless ``overwrite`` is set, or ``size_compare`` is and the
    server's has another size. The file appears whole or not at all."""
    if urlsplit(url).scheme not in _SCHEMES:
        raise failure("ValueError", f"an address begins with http, https or file, not {url!r}")
    target = Path(path).expanduser()
    if target.is_file() and not overwrite and not (size_compare and _size(url) != target.stat().st_size):
        return
    for left in range(max(retries, 1) - 1, -1, -1):
        try:
            write_beside(target, lambda beside: _fetch(url, beside))
            return
        except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
            if not left:
                raise failure(
                    "OSError", f"{url} cannot be downloaded: {error}. Put the file at {target} by hand"
                ) from error


def download_testdata(
    url: str, relpath: str, module: str | list[str] | tuple[str, ...] | None = None, overwrite: bool = False
) -> str:
    """The path of a file under ``test_data`` in the cache folder, fetched if it is not there; ``module`` names folders
    below that, and an empty ``relpath`` takes the name from the address."""
    folders = () if module is None else (module,) if isinstance(module, str) else tuple(module)
    name = relpath or Path(unquote(urlsplit(url).path)).name
    path = cache_dir().joinpath("test_data", *folders, name)
    download(url, path, overwrite)
    return str(path)


def _fetch(url: str, path: Path) -> None:
    with urllib.request.urlopen(url, timeout=_TIMEOUT) as answer, path.open("wb") as out:
        shutil.copyfileobj(answer, out)


def _size(url: str) -> int:
    """The size that the server names; -1 if it names none."""
    with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=_TIMEOUT) as answer:
        return int(answer.headers.get("Content-Length", -1))
