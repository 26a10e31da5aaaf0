"""What the process of a server, a tracker or a proxy is told."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any


@dataclass
class Settings:
    """What a daemon is told."""

    what: str = "server"
    host: str = "127.0.0.1"
    port: int = 9091
    port_end: int = 9199
    key: str | None = None
    """The pre-shared key, as hexadecimal digits."""
    label: str = ""
    tracker: tuple[str, int] | None = None
    custom_addr: str | None = None
    is_proxy: bool = False
    libraries: tuple[str, ...] = ()
    callback: tuple[str, str, str] | None = None
    """A function to call first: its module, its name, and the file of the module if that is the main one."""
    most_seconds: int = 0
    silent: bool = False
    paths: tuple[str, ...] = ()

    def secret(self) -> bytes | None:
        """The pre-shared key."""
        return bytes.fromhex(self.key) if self.key is not None else None

    def to_json(self) -> str:
        """One line."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(line: str) -> Settings:
        """The reverse."""
        fields: dict[str, Any] = json.loads(line)
        for name in ("tracker", "libraries", "callback", "paths"):
            if fields[name] is not None:
                fields[name] = tuple(fields[name])
        return Settings(**fields)
