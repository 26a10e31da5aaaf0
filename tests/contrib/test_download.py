"""Files over the network, from a server on this machine."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tilewright.contrib.download import download, download_testdata


class Server(HTTPServer):
    """Answers with ``content``, after ``failures`` answers of an error; counts what it was asked for."""

    content = b"cat"
    failures = 0
    asked = 0


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.server.content)))
        self.end_headers()

    def do_GET(self) -> None:
        self.server.asked += 1
        if self.server.failures:
            self.server.failures -= 1
            self.send_error(503)
            return
        self.do_HEAD()
        self.wfile.write(self.server.content)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def address(server: Server, name: str = "cat.png") -> str:
    return f"http://127.0.0.1:{server.server_port}/{name}"


def test_download(server: Server, tmp_path: Path) -> None:
    """Fetched once; again if it is to be overwritten, or has another size and that is looked at."""
    path = tmp_path / "new" / "cat.png"
    download(address(server), path)
    assert path.read_bytes() == b"cat"
    server.content = b"black cat"
    download(address(server), path)
    assert path.read_bytes() == b"cat"
    download(address(server), path, size_compare=True)
    assert path.read_bytes() == b"black cat"
    download(address(server), path, size_compare=True)
    assert server.asked == 2
    download(address(server), path, overwrite=True)
    assert server.asked == 3


def test_retries(server: Server, tmp_path: Path) -> None:
    """A server that fails is asked again; the last failure is an error with the address and what to do, and no file
    is left."""
    server.failures = 2
    download(address(server), tmp_path / "a")
    assert server.asked == 3
    server.failures = 2
    with pytest.raises(OSError, match=r"cat\.png cannot be downloaded: .*503.*\. Put the file at"):
        download(address(server), tmp_path / "b", retries=2)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_testdata(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file lies in the cache folder, in folders that the caller names; without a name it keeps its own."""
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    path = download_testdata(address(server), "imagenet_cat.png", module="data")
    assert path == str(tmp_path / "test_data" / "data" / "imagenet_cat.png")
    assert Path(path).read_bytes() == b"cat"
    assert download_testdata(address(server, "a%20b.png?x=1"), "", ["one", "two"]).endswith("one/two/a b.png")


def test_other_schemes(tmp_path: Path) -> None:
    """Only the web and files."""
    with pytest.raises(ValueError, match="begins with http, https or file, not 'ftp://"):
        download("ftp://example.org/x", tmp_path / "x")
    (tmp_path / "from").write_bytes(b"here")
    download((tmp_path / "from").as_uri(), tmp_path / "to")
    assert (tmp_path / "to").read_bytes() == b"here"
