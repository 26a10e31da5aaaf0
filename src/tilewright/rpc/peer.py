"""A session as the owner of its objects: how they travel, in both directions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.rpc import values
from tilewright.rpc.connection import Requester
from tilewright.rpc.failures import ProtocolError
from tilewright.rpc.frames import Kind, Reader, text
from tilewright.rpc.remote_array import RemoteArray, RemoteDevice
from tilewright.rpc.remote_executor import RemoteGraphExecutor
from tilewright.rpc.remote_module import RemoteFunction, RemoteModule
from tilewright.rpc.values import DEVICE_LAYOUT, U32, U64, Decoder, Encoder
from tilewright.runtime.device import Device
from tilewright.runtime.failure import failure
from tilewright.runtime.ndarray import NDArray


class Peer:
    """What the objects of one session share: its connection, and its number among the sessions of this process."""

    def __init__(self, requester: Requester, index: int) -> None:
        self.requester = requester
        self.index = index
        self.free = requester.free
        self.request = requester.request

    def __repr__(self) -> str:
        return f"remote[{self.index}]"

    def device(self, device_type: int, device_id: int) -> RemoteDevice:
        """A device of the server's machine."""
        return RemoteDevice(self, device_type, device_id)

    # ---- values ----

    def _refer(self, value: Any) -> bytes:
        """An argument that is an object."""
        if isinstance(value, (RemoteArray, RemoteFunction, RemoteModule)):
            if value.peer is not self:
                raise failure(
                    "ValueError", f"an argument is an object of {value.peer}, the function one of {self}"
                )
            return values.reference(value.remote_handle)
        if isinstance(value, RemoteDevice):
            if value.peer is not self:
                raise failure(
                    "ValueError", f"an argument is a device of {value.peer}, the function is of {self}"
                )
            return bytes([values.DEVICE]) + DEVICE_LAYOUT.pack(value.remote_type, value.device_id)
        if isinstance(value, Device):
            raise failure(
                "TypeError",
                f"the remote function was given {value} of this machine; use the session's, as in session.cpu()",
            )
        if isinstance(value, (NDArray, np.ndarray)) or hasattr(value, "__dlpack__"):
            raise failure(
                "TypeError",
                "the remote function was given an array of this machine; copy it first: nd.array(x, session.cpu())",
            )
        if callable(value):
            raise failure(
                "TypeError",
                "a function of this process cannot be passed to a remote one; the server does not call its clients",
            )
        raise failure("TypeError", f"a {type(value).__name__} cannot be passed to a remote function")

    def _resolve(self, tag: int, reader: Reader) -> Any:
        """A result that is an object."""
        if tag == values.ARRAY:
            handle = reader.number(U64)
            shape, dtype, device = values.read_array_description(reader)
            return RemoteArray(self, handle, shape, dtype, self.device(device.device_type, device.device_id))
        if tag == values.FUNCTION:
            return RemoteFunction(self, reader.number(U64), reader.text())
        if tag == values.MODULE:
            handle, type_key = reader.number(U64), reader.text()
            kind = RemoteGraphExecutor if type_key == "GraphExecutor" else RemoteModule
            return kind(self, handle, type_key)
        raise ProtocolError(f"a value with the tag {tag} in an answer")

    def ask(self, kind: int, head: bytes = b"", bulk: Sequence[Any] = ()) -> Any:
        """A request whose answer is one value."""
        head, content = self.request(kind, head, bulk)
        return self._decode(head, content)

    def _decode(self, head: bytes, bulk: bytes) -> Any:
        decoder = Decoder(Reader(head), bulk, self._resolve)
        value = decoder.value()
        decoder.end()
        if type(value) is Device:
            return self.device(value.device_type, value.device_id)
        return value

    def global_function(self, name: str) -> RemoteFunction:
        """A function of the server by name."""
        found: RemoteFunction | None = self.ask(Kind.GET_FUNCTION, text(name))
        if found is None:
            raise failure("AttributeError", f"the server has no function {name!r}")
        return found

    def place(self, device: Device) -> tuple[int, int]:
        """Type and index, on the server's machine, of a device of this session."""
        if not isinstance(device, RemoteDevice) or device.peer is not self:
            raise failure(
                "ValueError", f"{device} is not a device of {self}; use session.cpu() or another of its own"
            )
        return device.remote_type, device.device_id

    def call(self, kind: int, start: bytes, args: tuple[Any, ...]) -> Any:
        """A request with arguments."""
        encoder = Encoder(self._refer)
        for value in args:
            encoder.add(value)
        head, bulk = self.request(kind, start + U32.pack(len(args)) + encoder.head(), encoder.bulk)
        return self._decode(head, bulk)
