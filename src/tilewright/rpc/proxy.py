"""``Proxy``: where servers that cannot be reached wait for clients, as an object of the program that starts it."""

from __future__ import annotations

import os

from tilewright.rpc.keys import find_key
from tilewright.rpc.process import Daemon
from tilewright.rpc.settings import Settings
from tilewright.support.errors import RPCError


class Proxy(Daemon):
    """A proxy on this machine, which ends with this object or with ``terminate``."""

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 9091,
        port_end: int = 9199,
        web_port: int = 0,
        timeout_client: float = 600,
        timeout_server: float = 600,
        tracker_addr: tuple[str, int] | None = None,
        index_page: str | None = None,
        resource_files: object = None,
        *,
        silent: bool = False,
        key_file: str | os.PathLike[str] | None = None,
    ) -> None:
        """Starts it at the first free port of a range. With ``tracker_addr``, the devices of servers that wait here
        are offered at that tracker."""
        if web_port or index_page or resource_files:
            raise RPCError(
                "the proxy serves TCP only, no web sockets: omit web_port, index_page and resource_files"
            )
        secret = find_key(key_file)
        super().__init__(
            Settings(
                what="proxy",
                host=host,
                port=port,
                port_end=port_end,
                key=secret.hex() if secret is not None else None,
                tracker=(str(tracker_addr[0]), int(tracker_addr[1])) if tracker_addr else None,
                silent=silent,
            )
        )
