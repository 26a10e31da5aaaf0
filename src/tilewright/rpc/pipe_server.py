"""A server of one session over two pipes: ``python -m tilewright.rpc.pipe_server READ WRITE``."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tilewright.rpc.failures import ChannelError, ProtocolError
from tilewright.rpc.folder import Folder
from tilewright.rpc.frames import Kind, frame, read_frame
from tilewright.rpc.handshake import accept_channel
from tilewright.rpc.service import Service
from tilewright.rpc.serving import OpenRequest, open_answer, refuse, serve
from tilewright.rpc.streams import PipeStream


def serve_pipes(read: int, write: int) -> None:
    """Serves one session over two file descriptors."""
    channel = accept_channel(PipeStream(read, write), None, local=True)
    try:
        kind, head, _ = read_frame(channel, 0)
        if kind != Kind.OPEN:
            raise ProtocolError("the first message of a session is not OPEN")
        asked = OpenRequest(head)
    except ProtocolError as error:
        refuse(channel, error)
        return
    channel.write(frame(Kind.OK, open_answer("", asked.seconds)))
    service = Service(Folder(Path(tempfile.mkdtemp(prefix="tilewright-rpc-"))))
    try:
        serve(channel, service)
    finally:
        service.close()


def main() -> int:
    """Runs the server."""
    try:
        serve_pipes(int(sys.argv[1]), int(sys.argv[2]))
    except ChannelError as error:
        sys.stderr.write(f"error: {error.message}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
