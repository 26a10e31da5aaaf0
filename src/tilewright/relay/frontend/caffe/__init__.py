"""The Caffe frontend."""

from tilewright.relay.frontend.caffe.format import FRONTEND, from_caffe

__all__ = ["FRONTEND", "from_caffe"]
