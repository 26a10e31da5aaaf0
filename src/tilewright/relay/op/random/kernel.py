"""Random numbers by Threefry. A generator is a tensor of ten uint64 words: the same generator gives the same numbers on
every machine, and every operator that uses one returns a new one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright import topi
from tilewright.ir.base import RelayExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import TupleType, Type
from tilewright.relay.expr import Call, Constant, TupleWrapper, const
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.random import threefry
from tilewright.relay.op.shapes import dims, same, tensor, tensors
from tilewright.runtime.ndarray import numpy_dtype
from tilewright.support.dtype import DataType
from tilewright.support.errors import ExpressionError

_WORDS = 10
GENERATOR = TensorType((_WORDS,), "uint64")
"""The type of generators."""


@attributes
class ThreefryGenerateAttrs(OpAttrs):
    """The shape of the random words."""

    out_shape: tuple[Any, ...]


@attributes
class UniformAttrs(OpAttrs):
    """The shape and type of the random numbers."""

    out_shape: tuple[Any, ...]
    out_dtype: str = "float32"


def _generator(given: Type) -> TensorType | None:
    found = tensor(given, "the generator")
    if found is None:
        return None
    shape = dims(found)
    if found.dtype != "uint64" or len(shape) != 1:
        raise RelationError(f"a generator is ten words of uint64, as threefry_key makes them, not {found}")
    same(shape[0], _WORDS, "the words of a generator, which are ten, as threefry_key makes them")
    return found


def _words_type(types: Sequence[Type], attrs: Any) -> Type | None:
    found = _generator(types[0])
    return found and TupleType((GENERATOR, TensorType(attrs.out_shape, "uint64")))


def _split_type(types: Sequence[Type], attrs: Any) -> Type | None:
    found = _generator(types[0])
    return found and TupleType((GENERATOR, GENERATOR))


def _uniform_type(types: Sequence[Type], attrs: Any) -> Type | None:
    limits = tensors(types[1:], "the lower limit", "the upper limit")
    if _generator(types[0]) is None or limits is None:
        return None
    if attrs.out_dtype not in ("float16", "float32", "float64"):
        raise RelationError(f"uniform gives float16, float32 or float64, not {attrs.out_dtype}")
    for limit in limits:
        if dims(limit) or limit.dtype != attrs.out_dtype:
            raise RelationError(f"a limit is a scalar of {attrs.out_dtype}, not {limit}")
    return TupleType((GENERATOR, TensorType(attrs.out_shape, attrs.out_dtype)))


_GENERATE = define(
    "random.threefry_generate",
    arguments=("key",),
    attrs=ThreefryGenerateAttrs,
    relation=_words_type,
    compute=lambda attrs, inputs, out_type: list(topi.random.threefry_generate(inputs[0], attrs.out_shape)),
    reference=lambda attrs, key: threefry.generate(key, attrs.out_shape),
    kind=OpPattern.OPAQUE,
    description="A generator for further numbers, and random words.",
)

_SPLIT = define(
    "random.threefry_split",
    arguments=("key",),
    relation=_split_type,
    compute=lambda attrs, inputs, out_type: list(topi.random.threefry_split(inputs[0])),
    reference=lambda attrs, key: threefry.split(key),
    kind=OpPattern.OPAQUE,
    description="Two generators.",
)

_UNIFORM = define(
    "random.uniform",
    arguments=("key", "low", "high"),
    attrs=UniformAttrs,
    relation=_uniform_type,
    compute=lambda attrs, inputs, out_type: list(
        topi.random.uniform(inputs[0], inputs[1], inputs[2], attrs.out_shape, attrs.out_dtype)
    ),
    reference=lambda attrs, key, low, high: threefry.uniform(
        key, low, high, attrs.out_shape, numpy_dtype(DataType(attrs.out_dtype))
    ),
    kind=OpPattern.OPAQUE,
    description="A generator for further numbers, and numbers between two, all equally likely.",
)


def threefry_key(seed: int) -> Constant:
    """A generator from a seed of up to 256 bits."""
    if not 0 <= seed < 1 << 256:
        raise ExpressionError(f"a seed is an integer from 0 to 2**256 - 1, not {seed}")
    words = np.frombuffer(seed.to_bytes(32, "little"), dtype="<u8").astype(np.uint64)
    # No path yet, a counter of zero, and the first bit of the first path word is next.
    return Constant(np.concatenate([words, np.asarray([0, 0, 0, 0, 1 << 63, 0], dtype=np.uint64)]))


def _extents(shape: Any) -> tuple[Any, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def threefry_generate(key: RelayExpr, shape: Sequence[int]) -> TupleWrapper:
    """A generator for further numbers, and random words (uint64) in a shape."""
    return TupleWrapper(Call(_GENERATE, (key,), ThreefryGenerateAttrs(_extents(shape))), 2)


def threefry_split(key: RelayExpr) -> TupleWrapper:
    """Two generators, whose numbers have nothing to do with each other or with those of the first one."""
    return TupleWrapper(Call(_SPLIT, (key,)), 2)


def uniform(
    key: RelayExpr, shape: Sequence[int], dtype: str = "float32", low: Any = 0.0, high: Any = 1.0
) -> TupleWrapper:
    """A generator for further numbers, and numbers from ``low`` to ``high``, all equally likely, in a shape."""
    limits = [one if isinstance(one, RelayExpr) else const(one, dtype) for one in (low, high)]
    return TupleWrapper(Call(_UNIFORM, (key, *limits), UniformAttrs(_extents(shape), dtype)), 2)
