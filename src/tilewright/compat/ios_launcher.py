"""TVM's launcher of its server in an iOS simulator. The app that it starts speaks TVM's own protocol, which this RPC
does not (``docs/rpc.md``), so that no environment is compatible."""

from __future__ import annotations

from enum import Enum
from typing import Any

from tilewright.compat.not_there import NotInThisVersion


class RPCServerMode(Enum):
    """How TVM's server on a phone is reached."""

    standalone = "standalone"
    proxy = "proxy"
    tracker = "tracker"


class ServerIOSLauncher:
    """A server in a simulator, of which there is none here."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotInThisVersion(
            "rpc.server_ios_launcher starts an app that speaks TVM's own protocol, which is not in this version: "
            "build a server for the device from the C runtime (docs/rpc.md)"
        )

    @staticmethod
    def is_compatible_environment() -> bool:
        """False: nothing is started here."""
        return False

    @staticmethod
    def shutdown_booted_devices() -> None:
        """Nothing was started, so nothing is ended."""


class ServerIOSContextManager:
    """A server in a simulator while a block runs."""

    def __init__(self, mode: str, host: str, port: int, key: str) -> None:
        self.arguments = (mode, host, port, key)

    def __enter__(self) -> ServerIOSLauncher:
        return ServerIOSLauncher(*self.arguments)

    def __exit__(self, *error: object) -> None:
        """The server has never been started."""
