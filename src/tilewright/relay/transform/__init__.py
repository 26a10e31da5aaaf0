"""Passes over graph-level programs, one file each."""

from tilewright.relay.transform.base import FunctionPass, function_pass
from tilewright.relay.transform.fuse_ops import FuseOps
from tilewright.relay.transform.infer_type import InferType
