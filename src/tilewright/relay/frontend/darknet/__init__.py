"""The Darknet frontend."""

from tilewright.relay.frontend.darknet.format import FRONTEND, from_darknet

__all__ = ["FRONTEND", "from_darknet"]
