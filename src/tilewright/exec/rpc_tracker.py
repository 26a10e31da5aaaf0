"""A tracker, which lends the devices of servers to clients: ``python -m tilewright.exec.rpc_tracker``.

It listens on this machine only, unless it has a key (--key-file).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tilewright.exec.rpc_options import make_parser, serve_until_signal
from tilewright.rpc.settings import Settings


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program."""
    given = make_parser("rpc_tracker", __doc__, 9190).parse_args(arguments)
    settings = Settings(
        what="tracker", host=given.host, port=given.port, port_end=given.port_end, silent=given.silent
    )
    return serve_until_signal(settings, given.key_file)


if __name__ == "__main__":
    sys.exit(main())
