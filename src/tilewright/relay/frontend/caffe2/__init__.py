"""The Caffe2 frontend."""

from tilewright.relay.frontend.caffe2.format import FRONTEND, from_caffe2

__all__ = ["FRONTEND", "from_caffe2"]
