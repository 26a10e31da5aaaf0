"""Running on other machines: sessions on servers, trackers that lend devices, and the servers themselves.

Compile here, run there::

    remote = rpc.connect("board.local", 9090)
    remote.upload("model.so")
    library = remote.load_module("model.so")
    x = nd.array(values, remote.cpu())

See ``docs/rpc.md``; the protocol is in ``docs/rpc-protocol.md``.
"""

from tilewright.rpc import client, proxy, server, tracker
from tilewright.rpc.client import LocalSession, PopenSession, RPCSession, connect
from tilewright.rpc.keys import generate_key
from tilewright.rpc.minrpc import with_minrpc
from tilewright.rpc.proxy import Proxy
from tilewright.rpc.server import Server
from tilewright.rpc.tracker import Tracker
from tilewright.rpc.tracker_session import TrackerSession, connect_tracker
from tilewright.support.errors import RPCSessionTimeoutError

__all__ = [
    "LocalSession",
    "PopenSession",
    "Proxy",
    "RPCSession",
    "RPCSessionTimeoutError",
    "Server",
    "Tracker",
    "TrackerSession",
    "connect",
    "connect_tracker",
    "generate_key",
    "with_minrpc",
]
