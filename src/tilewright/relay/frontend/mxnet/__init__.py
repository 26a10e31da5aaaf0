"""The MXNet frontend."""

from tilewright.relay.frontend.mxnet.format import FRONTEND, from_mxnet

__all__ = ["FRONTEND", "from_mxnet"]
