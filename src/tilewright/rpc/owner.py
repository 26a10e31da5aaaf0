"""What the objects of a session need of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from tilewright.rpc.file_content import FileContent
from tilewright.rpc.streams import Buffer
from tilewright.runtime.device import Device
from tilewright.runtime.packed_func import PackedFunc


class Owner(Protocol):
    """A session, as its devices, arrays, functions and modules know it."""

    index: int
    """The number of the session in this process, which its devices carry."""

    def request(
        self,
        kind: int,
        head: bytes = b"",
        bulk: Sequence[Buffer] | FileContent = (),
        into: memoryview | None = None,
    ) -> tuple[bytes, bytes]:
        """Sends a request and waits; head and bulk of the answer."""

    def free(self, handle: int) -> None:
        """Releases an object of the server."""

    def ask(self, kind: int, head: bytes = b"", bulk: Sequence[Buffer] = ()) -> Any:
        """A request whose answer is one value."""

    def call(self, kind: int, start: bytes, args: tuple[Any, ...]) -> Any:
        """A request with arguments, whose answer is one value."""

    def global_function(self, name: str) -> PackedFunc:
        """A function of the server by name."""

    def place(self, device: Device) -> tuple[int, int]:
        """Type and index, on the server's machine, of a device of this session."""
