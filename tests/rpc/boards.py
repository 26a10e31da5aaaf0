"""A tracker with a device to measure on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tilewright import rpc


@contextmanager
def tracker_with_a_board() -> Iterator[rpc.Tracker]:
    """A tracker on this machine that lends one device, called "board", within the block."""
    tracker = rpc.Tracker(port=0, port_end=0, silent=True)
    address = ("127.0.0.1", tracker.port)
    server = rpc.Server(port=0, port_end=0, key="board", tracker_addr=address, silent=True)
    yield tracker
    server.terminate()
    tracker.terminate()
