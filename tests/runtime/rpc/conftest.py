"""The C server, built once with the address and undefined-behaviour sanitizers, and started for a test."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tilewright.rpc.keys import write_key
from tilewright.support.cbuild import server_sources

_FLAGS = ("-std=c11", "-O1", "-DTILEWRIGHT_STATIC", "-DTILEWRIGHT_OWN_LOADER", "-DTILEWRIGHT_NO_CUDA")
_SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")


@pytest.fixture(scope="session")
def server_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The server for this machine, with the sanitizers."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler here")
    output = tmp_path_factory.mktemp("server") / "tw-rpc-server"
    command = [compiler, *_FLAGS, *_SANITIZERS, *map(str, server_sources()), "-o", str(output)]
    subprocess.run([*command, "-pthread", "-lm", "-ldl"], check=True)
    return output


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    """A new key."""
    write_key(tmp_path / "key")
    return tmp_path / "key"


class StartedServer:
    """A server that runs, where it listens, and what it printed to the error stream."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self.folder = folder
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("TILEWRIGHT_RPC")
        }
        self.process = subprocess.Popen(
            [*command, "--port", "0", "--folder", str(folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        assert self.process.stdout is not None and self.process.stderr is not None
        line = self.process.stdout.readline()
        found = re.match(r"listening on (\S+) port (\d+)", line)
        assert found is not None, (line, self.process.stderr.read())
        self.host, self.port = found.group(1), int(found.group(2))
        self.errors: list[str] = []
        self._stopped = False
        self._reader = threading.Thread(target=self._read, args=(self.process.stderr,), daemon=True)
        self._reader.start()

    def _read(self, stream: Iterator[str]) -> None:
        self.errors += stream

    def stop(self) -> None:
        """Ends it, and checks that it was still there and reported nothing; a second time does nothing."""
        if self._stopped:
            return
        self._stopped = True
        alive = self.process.poll() is None
        self.process.terminate()
        self.process.wait(10)
        self._reader.join(5)
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        assert alive, "".join(self.errors)
        assert not self.errors, "".join(self.errors)


@pytest.fixture
def start_server(server_program: Path, tmp_path: Path) -> Iterator[Callable[..., StartedServer]]:
    """Starts servers with options; each is ended and checked after the test."""
    started: list[StartedServer] = []

    def start(*options: str) -> StartedServer:
        folder = tmp_path / f"sessions{len(started)}"
        folder.mkdir()
        started.append(StartedServer([str(server_program), *options], folder))
        return started[-1]

    yield start
    for server in started:
        server.stop()
