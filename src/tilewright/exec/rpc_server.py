"""A server on which clients run compiled models: ``python -m tilewright.exec.rpc_server``.

It listens on this machine only, unless it has a key:

    tilewright rpc keygen ~/.tilewright-key
    python -m tilewright.exec.rpc_server --host 0.0.0.0 --key-file ~/.tilewright-key --tracker lab:9190 --key rasp4b
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tilewright.exec.rpc_options import make_parser, parse_address, serve_until_signal
from tilewright.rpc.settings import Settings
from tilewright.support.errors import RPCError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program."""
    parser = make_parser("rpc_server", __doc__, 9090)
    parser.add_argument("--through-proxy", action="store_true", help="--host and --port are those of a proxy")
    parser.add_argument("--tracker", metavar="HOST:PORT", help="offer the device at this tracker")
    parser.add_argument(
        "--key", default="", help="the label by which clients ask for the device; not a secret"
    )
    parser.add_argument("--load-library", metavar="FILE[:FILE]", help="libraries to load first")
    parser.add_argument(
        "--custom-addr", metavar="HOST", help="where clients find this server, for the tracker"
    )
    parser.add_argument(
        "--session-timeout",
        type=int,
        default=0,
        metavar="S",
        help="the most seconds of a session; default: any",
    )
    parser.add_argument(
        "--no-fork", action="store_true", help="no effect: every session is a process of its own anyway"
    )
    given = parser.parse_args(arguments)
    try:
        tracker = parse_address(given.tracker, "the tracker")
        if tracker is not None and not given.key:
            raise RPCError("a server at a tracker needs --key, by which clients ask for the device")
    except RPCError as error:
        sys.stderr.write(f"error: {error.message}\n")
        return 2
    settings = Settings(
        what="server",
        host=given.host,
        port=given.port,
        port_end=given.port_end,
        label=given.key,
        tracker=tracker,
        custom_addr=(given.custom_addr or "").strip("'\"") or None,
        is_proxy=given.through_proxy,
        libraries=tuple(given.load_library.split(":")) if given.load_library else (),
        most_seconds=given.session_timeout,
        silent=given.silent,
    )
    return serve_until_signal(settings, given.key_file)


if __name__ == "__main__":
    sys.exit(main())
