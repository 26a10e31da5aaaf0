"""``Tracker``: a tracker in a process of its own, as an object of the program that starts it."""

from __future__ import annotations

import os

from tilewright.rpc.keys import find_key
from tilewright.rpc.process import Daemon
from tilewright.rpc.settings import Settings


class Tracker(Daemon):
    """A tracker on this machine, which ends with this object or with ``terminate``."""

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 9190,
        port_end: int = 9199,
        silent: bool = False,
        *,
        key_file: str | os.PathLike[str] | None = None,
    ) -> None:
        """Starts it at the first free port of a range; loopback needs no key file, any other address does."""
        secret = find_key(key_file)
        key = secret.hex() if secret is not None else None
        super().__init__(
            Settings(what="tracker", host=host, port=port, port_end=port_end, key=key, silent=silent)
        )
