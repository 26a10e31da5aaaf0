"""Listening sockets: loopback without a key, anything with one."""

from __future__ import annotations

import socket

from tilewright.rpc.handshake import is_loopback
from tilewright.support.errors import RPCError

_BACKLOG = 128


def listen(host: str, port: int, port_end: int, key: bytes | None) -> socket.socket:
    """A listening socket at the first free port of a range, or at any for port 0."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise RPCError(f"{host!r} is not an address of this machine: {error}") from error
    if key is None and not is_loopback(str(address[0])):
        raise RPCError(
            f"listening on {address[0]} lets other machines in, which needs a key: `tilewright rpc keygen FILE` makes "
            "one; name the file with --key-file, key_file= or TILEWRIGHT_RPC_KEY_FILE, or listen on 127.0.0.1"
        )
    problem: OSError | None = None
    for number in range(port, max(port + 1, port_end)):
        opened = socket.socket(family, kind, protocol)
        try:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            opened.bind((address[0], number, *address[2:]))
            opened.listen(_BACKLOG)
        except OSError as error:
            opened.close()
            problem = error
        else:
            opened.setblocking(False)
            return opened
    raise RPCError(f"no free port from {port} to {port_end - 1} on {host}: {problem}") from problem


def keep_alive(connection: socket.socket) -> None:
    """Notices within minutes that the other machine is gone."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
