"""What the programs of RPC have in common: options, and a loop that ends with a signal."""

from __future__ import annotations

import argparse
import logging
import signal
import sys

from tilewright.rpc.daemon import start
from tilewright.rpc.handshake import is_loopback
from tilewright.rpc.keys import find_key
from tilewright.rpc.loop import Loop
from tilewright.rpc.settings import Settings
from tilewright.support.errors import RPCError


def make_parser(name: str, description: str | None, port: int) -> argparse.ArgumentParser:
    """A parser with the options of every server."""
    parser = argparse.ArgumentParser(
        prog=f"python -m tilewright.exec.{name}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--host", default="127.0.0.1", help="the address to listen on; default: this machine only"
    )
    parser.add_argument("--port", type=int, default=port, help=f"the first port to try; default: {port}")
    parser.add_argument(
        "--port-end", type=int, default=9199, help="the end of the ports to try; default: 9199"
    )
    parser.add_argument("--silent", action="store_true", help="print errors only")
    add_key_option(parser)
    return parser


def add_key_option(parser: argparse.ArgumentParser) -> None:
    """The option that names the file of the secret key."""
    parser.add_argument(
        "--key-file",
        metavar="FILE",
        help="the secret key, as `tilewright rpc keygen FILE` writes it; default: TILEWRIGHT_RPC_KEY_FILE",
    )


def parse_address(text: str | None, what: str) -> tuple[str, int] | None:
    """Host and port of HOST:PORT."""
    if not text:
        return None
    host, separator, port = text.rpartition(":")
    if not separator or not port.isdigit():
        raise RPCError(f"{what} {text!r} is not of the form HOST:PORT")
    return host.strip("[]"), int(port)


def serve_until_signal(settings: Settings, key_file: str | None) -> int:
    """Runs a server, a tracker or a proxy until Ctrl-C or SIGTERM; the exit code."""
    logging.basicConfig(
        level=logging.ERROR if settings.silent else logging.INFO, format="%(asctime)s %(message)s"
    )
    try:
        secret = find_key(key_file)
        settings.key = secret.hex() if secret is not None else None
        loop = Loop()
        running, listening = start(loop, settings)
    except (RPCError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: loop.stop())
    if listening is not None and not settings.silent:
        host, port = listening.getsockname()[:2]
        sys.stdout.write(f"{settings.what} at {host}:{port}, {_who(str(host), secret)}\n")
        sys.stdout.flush()
    loop.later(0.0, lambda: _tick(loop))
    try:
        loop.run()
    finally:
        running.close()
    return 0


def _tick(loop: Loop) -> None:
    """Wakes the loop now and then, so that it sees a signal that came while it waited."""
    loop.later(0.5, lambda: _tick(loop))


def _who(host: str, secret: bytes | None) -> str:
    if secret is not None:
        return "for clients with the key, encrypted"
    return "for every process of this machine" if is_loopback(host) else ""
