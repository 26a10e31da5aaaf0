"""A proxy, at which servers that cannot be connected to wait for clients: ``python -m tilewright.exec.rpc_proxy``.

It listens on this machine only, unless it has a key (--key-file). TCP only: there are no web sockets.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tilewright.exec.rpc_options import make_parser, parse_address, serve_until_signal
from tilewright.rpc.settings import Settings
from tilewright.support.errors import RPCError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program."""
    parser = make_parser("rpc_proxy", __doc__, 9090)
    parser.add_argument(
        "--tracker", metavar="HOST:PORT", help="offer the devices that wait here at this tracker"
    )
    parser.add_argument(
        "--custom-addr", metavar="HOST", help="where clients find this proxy, for the tracker"
    )
    given = parser.parse_args(arguments)
    try:
        tracker = parse_address(given.tracker, "the tracker")
    except RPCError as error:
        sys.stderr.write(f"error: {error.message}\n")
        return 2
    settings = Settings(
        what="proxy",
        host=given.host,
        port=given.port,
        port_end=given.port_end,
        tracker=tracker,
        custom_addr=given.custom_addr,
        silent=given.silent,
    )
    return serve_until_signal(settings, given.key_file)


if __name__ == "__main__":
    sys.exit(main())
