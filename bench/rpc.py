"""What a remote call and an upload cost over loopback, with and without encryption.

Run as ``python bench/rpc.py`` (writes bench/results/rpc.md). A call is of a function that returns its argument, in a
server's session, which is a process of its own. The bandwidth of loopback itself is that of one process which writes
the same 100 MB to a socket while another reads them into its memory, with the best size of a read. Files are new ones,
because to replace a file costs what the file system needs to forget the old one; each is removed again, outside of the
measured time, because the disk that a growing heap of them is written to, and memory that a virtual machine has never
touched, would be measured otherwise. What is compared is measured in turns, so that whatever else the machine does
meets all of it; the best of several rounds is the cost of the code.
"""

from __future__ import annotations

import argparse
import itertools
import os
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np

from tilewright import rpc
from tilewright.rpc.keys import write_key
from tilewright.runtime import ndarray as nd

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from harness import write_table  # noqa: E402

MEGABYTES = 100
CALL_BUDGET = 100e-6
PIECES = (1 << 15, 1 << 16, 1 << 17, 1 << 20, MEGABYTES * 1_000_000)
"""How many bytes a read of loopback itself asks for; it has no fewer than the best of them."""

CleanUp = Callable[[], object]
Run = Callable[[], CleanUp | None]
"""What is measured; it may give what is to be done afterwards, which is not."""


def best_of_turns(runs: dict[str, Run], rounds: int) -> dict[str, float]:
    """The seconds of the fastest round of each."""
    found: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            begin = time.perf_counter()
            clean_up = run()
            found[name].append(time.perf_counter() - begin)
            if clean_up is not None:
                clean_up()
    return {name: min(seconds) for name, seconds in found.items()}


def call_seconds(session: rpc.RPCSession, rounds: int) -> float:
    """One call, of the fastest of several hundred calls."""
    echo = session.get_function("testing.echo")
    calls = 500

    def run() -> None:
        for _ in range(calls):
            echo(1)

    return best_of_turns({"call": run}, rounds)["call"] / calls


@contextmanager
def loopback(content: bytes, piece: int) -> Iterator[Run]:
    """Sends the content to another process, which reads so many bytes at once."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        child = os.fork()
        if child == 0:
            _receive(listening, len(content), piece)
        with socket.create_connection(listening.getsockname()) as connection:

            def run() -> None:
                connection.sendall(content)
                connection.recv(1)

            yield run
        os.waitpid(child, 0)


def _receive(listening: socket.socket, size: int, piece: int) -> None:
    """The reading process: a byte for each content that has arrived."""
    connection, _ = listening.accept()
    target = memoryview(bytearray(size))
    while True:
        done = 0
        while done < size:
            count = connection.recv_into(target[done : done + piece])
            if count == 0:
                os._exit(0)
            done += count
        connection.sendall(b"x")


def uploads(session: rpc.RPCSession, content: bytes, path: Path, kind: str) -> dict[str, Run]:
    """Ways to send the content to a session."""
    elements = np.frombuffer(content, "uint8")
    remote = nd.empty(elements.shape, "uint8", session.cpu())
    names = itertools.count()

    def into_array() -> None:
        remote.copyfrom(elements)

    def into_file(source: bytes | Path) -> CleanUp:
        name = f"file{next(names)}"
        session.upload(source, name)
        return lambda: session.remove(name)

    return {
        f"100 MB into an array, {kind}": into_array,
        f"100 MB of memory into a file, {kind}": lambda: into_file(content),
        f"100 MB of a file into a file, {kind}": lambda: into_file(path),
    }


def file_itself(content: bytes, folder: Path) -> Run:
    """Writes the content to a new file: what no upload of a file can be faster than."""
    names, view = itertools.count(), memoryview(content)

    def run() -> CleanUp:
        path = folder / f"itself{next(names)}"
        with open(path, "wb", buffering=0) as file:
            os.posix_fallocate(file.fileno(), 0, len(view))
            for at in range(0, len(view), 1 << 20):
                file.write(view[at : at + (1 << 20)])
        return path.unlink

    return run


def measure(rounds: int) -> list[list[str]]:
    """The rows of the table."""
    content = np.random.default_rng(0).integers(0, 256, MEGABYTES * 1_000_000, "uint8").tobytes()
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory() as made, ExitStack() as opened:
        folder = Path(made)
        key_file, path = folder / "key", folder / "content"
        write_key(key_file)
        path.write_bytes(content)
        runs: dict[str, Run] = {
            f"loopback, {piece} bytes at once": opened.enter_context(loopback(content, piece))
            for piece in PIECES
        }
        runs["100 MB into a file, without a connection"] = file_itself(content, folder)
        for kind, key in (("plain", None), ("encrypted", key_file)):
            server = rpc.Server(port=0, port_end=0, silent=True, key_file=key)
            opened.callback(server.terminate)
            session = opened.enter_context(rpc.connect("127.0.0.1", server.port, key_file=key))
            seconds = call_seconds(session, 4 * rounds)
            rows.append(
                [f"a call, {kind}", f"{seconds * 1e6:.1f} µs", "", "yes" if seconds < CALL_BUDGET else "NO"]
            )
            runs |= uploads(session, content, path, kind)
        rates = {name: len(content) / seconds for name, seconds in best_of_turns(runs, rounds).items()}
    itself = max(rates.pop(name) for name in list(rates) if name.startswith("loopback"))
    rows.append(_rate("100 MB over loopback itself", itself, itself))
    return rows + [_rate(name, rate, itself) for name, rate in rates.items()]


def _rate(what: str, rate: float, itself: float) -> list[str]:
    verdict = ("yes" if rate >= 0.8 * itself else "NO") if what.endswith("plain") else ""
    return [what, f"{rate / 1e9:.2f} GB/s", f"{100 * rate / itself:.0f} %", verdict]


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path, default=HERE / "results" / "rpc.md")
    given = parser.parse_args()
    write_table(
        given.output,
        "Remote calls and uploads over loopback",
        ["what", "measured", "of loopback", "within the budget"],
        measure(given.rounds),
        "Budgets: a call under 100 µs; a plain upload at 80 % of what loopback itself does. Encryption has no budget: "
        "its cost is the difference. A file is new memory of the system for every byte, an array is memory that is "
        "there: the row without a connection says what that costs alone.",
    )


if __name__ == "__main__":
    main()
