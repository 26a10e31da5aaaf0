"""What devices a tracker has, and who waits for them: ``python -m tilewright.exec.query_rpc_tracker``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tilewright.exec.rpc_options import add_key_option
from tilewright.rpc.tracker_session import connect_tracker
from tilewright.support.errors import RPCError
from tilewright.support.options import tracker_address


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program."""
    parser = argparse.ArgumentParser(prog="python -m tilewright.exec.query_rpc_tracker", description=__doc__)
    parser.add_argument("--host", default="", help="default: TVM_TRACKER_HOST, else this machine")
    parser.add_argument("--port", type=int, help="default: TVM_TRACKER_PORT, else 9190")
    add_key_option(parser)
    given = parser.parse_args(arguments)
    named_host, named_port = tracker_address()
    host, port = given.host or named_host or "127.0.0.1", given.port or named_port or 9190
    try:
        tracker = connect_tracker(host, port, key_file=given.key_file)
        sys.stdout.write(f"Tracker address {host}:{port}\n\n{tracker.text_summary()}\n")
    except RPCError as error:
        sys.stderr.write(f"error: {error.message}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
