"""``Server``: a server in a process of its own, as an object of the program that starts it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from tilewright.rpc.keys import find_key
from tilewright.rpc.process import Daemon
from tilewright.rpc.settings import Settings
from tilewright.support.errors import RPCError


def _by_name(callback: Callable[[], Any]) -> tuple[str, str, str]:
    """A function as another process can import it."""
    module, name = getattr(callback, "__module__", ""), getattr(callback, "__qualname__", "")
    if not module or not name or "<" in name:
        raise RPCError(
            "server_init_callback is called in the server's process, which imports it: define it with def at the top "
            "of a module, not as a lambda or inside of a function"
        )
    return module, name, str(getattr(sys.modules.get("__main__"), "__file__", "") or "")


def _libraries(named: str | Sequence[str] | None) -> tuple[str, ...]:
    parts = (named.split(":") if isinstance(named, str) else list(named)) if named else []
    return tuple(os.path.abspath(part) for part in parts)


class Server(Daemon):
    """A server on this machine, which ends with this object or with ``terminate``.

    Any number of clients have sessions at the same time, each in a process of its own; with ``tracker_addr`` the
    tracker lends the device to one after the other. ``key`` is the label of the device, not a secret.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 9091,
        port_end: int = 9199,
        is_proxy: bool = False,
        tracker_addr: tuple[str, int] | None = None,
        key: str = "",
        load_library: str | Sequence[str] | None = None,
        custom_addr: str | None = None,
        silent: bool = False,
        no_fork: bool = False,
        server_init_callback: Callable[[], Any] | None = None,
        *,
        key_file: str | os.PathLike[str] | None = None,
        session_timeout: int = 0,
    ) -> None:
        """Starts it at the first free port of a range; loopback needs no key file, any other address does.

        With ``is_proxy``, it connects to the proxy at that address instead of listening. ``load_library`` names
        libraries to load first, and ``server_init_callback`` a function to call first, both in the server's process.
        ``session_timeout`` limits every session, in seconds. Sessions are always processes of their own, so ``no_fork``
        changes nothing.
        """
        secret = find_key(key_file)
        super().__init__(
            Settings(
                what="server",
                host=host,
                port=port,
                port_end=port_end,
                key=secret.hex() if secret is not None else None,
                label=key,
                tracker=(str(tracker_addr[0]), int(tracker_addr[1])) if tracker_addr else None,
                custom_addr=custom_addr,
                is_proxy=is_proxy,
                libraries=_libraries(load_library),
                callback=_by_name(server_init_callback) if server_init_callback is not None else None,
                most_seconds=session_timeout,
                silent=silent,
            )
        )
