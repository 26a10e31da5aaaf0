"""Jobs for worker processes that misbehave in every way there is."""

from __future__ import annotations

import ctypes
import os
import time


def double(payload: bytes) -> bytes:
    """Behaves."""
    return payload * 2


def process(payload: bytes) -> bytes:
    """Says which process it ran in."""
    return str(os.getpid()).encode()


def raises(payload: bytes) -> bytes:
    """Fails in Python."""
    raise ValueError(payload.decode())


def aborts(payload: bytes) -> bytes:
    """Ends as LLVM does where it meets an error of its own."""
    if payload == b"abort":
        os.write(2, b"LLVM ERROR: cannot select\n")
        os.abort()
    return payload


def segfaults(payload: bytes) -> bytes:
    """Reads where nothing is."""
    ctypes.string_at(0)
    return payload


def leaves(payload: bytes) -> bytes:
    """Ends without a word."""
    os._exit(7)


def sleeps(payload: bytes) -> bytes:
    """Takes its time."""
    time.sleep(float(payload))
    return payload


def variable(payload: bytes) -> bytes:
    """Reads the environment."""
    return os.environ.get(payload.decode(), "unset").encode()
