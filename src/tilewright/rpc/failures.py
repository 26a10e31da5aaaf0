"""What goes wrong on a connection."""

from __future__ import annotations

from tilewright.support.errors import RPCError


class ChannelError(RPCError):
    """The connection failed, or what came over it is not what was agreed: it cannot be used any more."""


class ChannelClosed(ChannelError):
    """The other side has closed the connection."""


class ProtocolError(RPCError):
    """A message that does not follow the protocol."""


class RemoteError(RPCError):
    """An error that was raised on the other side. ``kind`` is its class there, by name."""

    def __init__(self, message: str, kind: str = "RuntimeError") -> None:
        super().__init__(message)
        self.kind = kind


_KINDS: dict[str, type[Exception]] = {
    kind.__name__: kind
    for kind in (
        ValueError,
        TypeError,
        IndexError,
        KeyError,
        AssertionError,
        MemoryError,
        NotImplementedError,
        AttributeError,
        OSError,
        PermissionError,
        FileNotFoundError,
        TimeoutError,
    )
}

_CLASSES: dict[str, type[RemoteError]] = {
    name: type(
        f"Remote{name}",
        (RemoteError, kind),
        {"__module__": __name__, "__str__": lambda self: str(self.message)},
    )
    for name, kind in _KINDS.items()
}


def remote_error(kind: str, message: str) -> RemoteError:
    """The exception for an error of the other side: an ``RPCError``, and where the kind is a built-in class, that."""
    return _CLASSES.get(kind, RemoteError)(f"{kind} on the remote machine: {message}", kind)
