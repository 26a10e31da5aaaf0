"""SimplifyInference: turns operators that only matter in training into arithmetic, which the other passes understand.

Afterwards there is no dropout and no batch, layer, group, instance or L2 normalisation: only sums, products and
reductions, which fold into weights and fuse with their neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Call, Tuple, const
from tilewright.relay.function import Function
from tilewright.relay.op.calls import call
from tilewright.relay.target import rewrites_for
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.rewriting import FieldsOfTuples, rewritten, shape_of, tensor_of
from tilewright.support.dtype import DataType
from tilewright.target import Target


def along_axis(vector: RelayExpr, rank: int, axis: int) -> RelayExpr:
    """A vector with axes of size one behind it, so that it is repeated along all axes of a tensor but this one."""
    behind = rank - axis % rank - 1
    return call("expand_dims", vector, axis=1, num_newaxis=behind) if behind else vector


def _in_type_of(vector: RelayExpr, vector_dtype: str, dtype: str) -> RelayExpr:
    return vector if vector_dtype == dtype else call("cast", vector, dtype=dtype)


def _batch_norm(old: Call, new: Call) -> RelayExpr:
    """``data * scale + shift``, where scale and shift do not depend on the data."""
    data, gamma, beta, mean, variance = new.args
    attrs: Any = new.attrs
    of_data, of_mean = tensor_of(old.args[0]), str(tensor_of(old.args[3]).dtype)
    rank, dtype = len(of_data.shape), str(of_data.dtype)
    scale: RelayExpr = const(1.0, of_mean) / call("sqrt", variance + const(attrs.epsilon, of_mean))
    if attrs.scale:
        scale = call("multiply", scale, gamma)
    shift: RelayExpr = call("multiply", call("negative", mean), scale)
    if attrs.center:
        shift = call("add", shift, beta)
    made: RelayExpr = data
    for name, vector in (("multiply", scale), ("add", shift)):
        vector = _in_type_of(vector, of_mean, dtype)
        made = call(name, made, along_axis(vector, rank, attrs.axis))
    return Tuple([made, mean, variance])


def _normalized(data: RelayExpr, axes: Sequence[int], epsilon: float, dtype: str) -> RelayExpr:
    """Mean 0 and variance 1 over axes."""
    mean = call("mean", data, axis=tuple(axes), keepdims=True)
    variance = call("variance", data, mean, axis=tuple(axes), keepdims=True)
    return call("divide", data - mean, call("sqrt", variance + const(epsilon, dtype)))


def _affine(value: RelayExpr, new: Call, rank: int) -> RelayExpr:
    """Multiplied by gamma, plus beta, if the attributes say so."""
    attrs: Any = new.attrs
    if attrs.scale:
        value = call("multiply", value, along_axis(new.args[1], rank, attrs.axis))
    if attrs.center:
        value = call("add", value, along_axis(new.args[2], rank, attrs.axis))
    return value


def _layer_norm(old: Call, new: Call) -> RelayExpr:
    attrs: Any = new.attrs
    of_data = tensor_of(old.args[0])
    kind = DataType(of_data.dtype)
    if kind.bits > 16:
        value = _normalized(new.args[0], (attrs.axis,), attrs.epsilon, str(kind))
        return _affine(value, new, len(of_data.shape))
    # The sums and the differences from them need more digits than the result has.
    wide = Call(new.op, [call("cast", argument, dtype="float32") for argument in new.args], new.attrs)
    value = _normalized(wide.args[0], (attrs.axis,), attrs.epsilon, "float32")
    return call("cast", _affine(value, wide, len(of_data.shape)), dtype=str(kind))


def _instance_norm(old: Call, new: Call) -> RelayExpr:
    attrs: Any = new.attrs
    of_data = tensor_of(old.args[0])
    rank = len(of_data.shape)
    axes = [axis for axis in range(1, rank) if axis != attrs.axis % rank]
    return _affine(_normalized(new.args[0], axes, attrs.epsilon, str(of_data.dtype)), new, rank)


def _group_norm(old: Call, new: Call) -> RelayExpr:
    """The channels' axis as two, groups and their members, and back."""
    attrs: Any = new.attrs
    rank = len(shape_of(old.args[0]))
    axis = attrs.axis % rank
    before = (0,) * axis
    split = call("reshape", new.args[0], newshape=(*before, -4, attrs.num_groups, -1, -2))
    axes = [place for place in range(1, rank + 1) if place != axis]
    value = _normalized(split, axes, attrs.epsilon, str(tensor_of(old.args[0]).dtype))
    return _affine(call("reshape", value, newshape=(*before, -3, -2)), new, rank)


def _l2_normalize(old: Call, new: Call) -> RelayExpr:
    attrs: Any = new.attrs
    data = new.args[0]
    total = call("sum", call("multiply", data, data), axis=attrs.axis, keepdims=True)
    least = const(attrs.eps, str(tensor_of(old.args[0]).dtype))
    return call("divide", data, call("sqrt", call("maximum", total, least)))


def _dropout(old: Call, new: Call) -> RelayExpr:
    """Nothing is dropped."""
    return Tuple([new.args[0], call("ones_like", new.args[0])])


RULES = {
    "nn.batch_norm": _batch_norm,
    "nn.layer_norm": _layer_norm,
    "nn.instance_norm": _instance_norm,
    "nn.group_norm": _group_norm,
    "nn.l2_normalize": _l2_normalize,
    "nn.dropout": _dropout,
}


@dataclass
class SimplifyInference(FunctionPass):
    """Replace operators of training by arithmetic."""

    name = "SimplifyInference"
    opt_level = 0

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function."""
        kept = rewrites_for(Target.current()).kept
        return rewritten(
            FieldsOfTuples({name: rule for name, rule in RULES.items() if name not in kept}), func
        )
