"""Running on other machines: sessions on servers, trackers that lend devices, and the servers themselves.

Compile here, run there::

    remote = rpc.connect("board.local", 9090)
    remote.upload("model.so")
    library = remote.load_module("model.so")
    x = nd.array(values, remote.cpu())

See ``docs/rpc.md``; the protocol is in ``docs/rpc-protocol.md``.
"""

from tilewright.rpc.client import LocalSession, PopenSession, RPCSession, connect
from tilewright.support.errors import RPCSessionTimeoutError

__all__ = ["LocalSession", "PopenSession", "RPCSession", "RPCSessionTimeoutError", "connect"]
