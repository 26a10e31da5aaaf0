"""What a remote call and an upload cost over loopback, with and without encryption.

Run as ``python bench/rpc.py`` (writes bench/results/rpc.md). A call is of a function that returns its argument, in a
server's session, which is a process of its own. The bandwidth of loopback itself is that of one process which writes
to a socket while another reads, with the best size of a read. The best of several rounds is the cost of the code.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
import tempfile
import time
from collections.abc import Callable
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
PIECES = (1 << 16, 1 << 20, MEGABYTES * 1_000_000)
"""How many bytes a read of loopback itself asks for; it has no fewer than the best of them."""


def best(run: Callable[[], object], rounds: int) -> float:
    """The seconds of the fastest round."""
    found = []
    for _ in range(rounds):
        begin = time.perf_counter()
        run()
        found.append(time.perf_counter() - begin)
    return min(found)


def call_seconds(session: rpc.RPCSession, rounds: int) -> float:
    """One call, of the fastest of several hundred calls."""
    echo = session.get_function("testing.echo")
    calls = 500

    def run() -> None:
        for _ in range(calls):
            echo(1)

    return best(run, rounds) / calls


def loopback_rate(rounds: int, piece: int) -> float:
    """Bytes a second between two processes, of which one reads so many bytes at once."""
    content = bytes(MEGABYTES * 1_000_000)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        child = os.fork()
        if child == 0:
            _receive(listening, len(content), piece)
        with socket.create_connection(listening.getsockname()) as connection:

            def run() -> None:
                connection.sendall(content)
                connection.recv(1)

            seconds = best(run, rounds)
        os.waitpid(child, 0)
    return len(content) / seconds


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


def measure(rounds: int) -> list[list[str]]:
    """The rows of the table."""
    loopback = max(loopback_rate(rounds, piece) for piece in PIECES)
    rows = [["loopback itself, 100 MB", f"{loopback / 1e9:.2f} GB/s", "100 %", ""]]
    content = np.random.default_rng(0).integers(0, 256, MEGABYTES * 1_000_000).astype("uint8")
    with tempfile.TemporaryDirectory() as folder:
        key_file = Path(folder) / "key"
        write_key(key_file)
        for kind, key in (("plain", None), ("encrypted", key_file)):
            server = rpc.Server(port=0, port_end=0, silent=True, key_file=key)
            with rpc.connect("127.0.0.1", server.port, key_file=key) as session:
                seconds = call_seconds(session, 4 * rounds)
                verdict = "yes" if seconds < CALL_BUDGET else "NO"
                rows.append([f"a call, {kind}", f"{seconds * 1e6:.1f} µs", "", verdict])
                remote = nd.empty(content.shape, "uint8", session.cpu())
                rate = len(content) / best(lambda remote=remote: remote.copyfrom(content), rounds)
                rows.append(_rate(f"100 MB into an array, {kind}", rate, loopback, kind))
                data = content.tobytes()
                rate = len(data) / best(lambda session=session: session.upload(data, "file"), rounds)
                rows.append(_rate(f"100 MB into a file, {kind}", rate, loopback, kind))
            server.terminate()
    return rows


def _rate(what: str, rate: float, loopback: float, kind: str) -> list[str]:
    verdict = ("yes" if rate >= 0.8 * loopback else "NO") if kind == "plain" else ""
    return [what, f"{rate / 1e9:.2f} GB/s", f"{100 * rate / loopback:.0f} %", verdict]


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
        "its cost is the difference.",
    )


if __name__ == "__main__":
    main()
