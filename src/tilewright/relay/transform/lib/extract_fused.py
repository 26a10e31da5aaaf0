"""The kernels of a program: its primitive functions, one for each structure."""

from __future__ import annotations

from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.ir.structural_hash import structural_hash
from tilewright.ir.transform import Sequential
from tilewright.relay.function import Function
from tilewright.relay.transform.fuse_ops import FuseOps
from tilewright.relay.transform.infer_type import InferType
from tilewright.relay.transform.simplify_inference import SimplifyInference


def extract_fused_functions(mod: IRModule) -> dict[int, Function]:
    """The primitive functions of a module, one for each structure, by structural hash.

    Where it has none yet, those that fusing it would make.
    """
    found = _primitive_functions(mod)
    if found:
        return found
    return _primitive_functions(Sequential([InferType(), SimplifyInference(), FuseOps(3)])(mod))


def _primitive_functions(mod: IRModule) -> dict[int, Function]:
    found: dict[int, Function] = {}
    for function in mod.functions.values():
        for inner in post_order(function):
            if isinstance(inner, Function) and inner.is_primitive:
                found.setdefault(structural_hash(inner), inner)
    return found
