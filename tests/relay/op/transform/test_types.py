"""Types of calls: with unknown dimensions, and where the arguments do not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tilewright import relay
from tilewright.relay.infer import TypeInferenceError, infer_expr
from tilewright.relay.ty import TensorType
from tilewright.support.errors import ExpressionError, TilewrightError

ANY = relay.Any()


def _var(*shape: Any, dtype: str = "float32") -> relay.Var:
    return relay.var("x", shape=shape, dtype=dtype)


def _type(expr: Any) -> Any:
    return infer_expr(expr).checked_type


@pytest.mark.parametrize(
    ("build", "shape"),
    [
        (lambda: relay.reshape(_var(ANY, 3, 4), (0, -1)), (ANY, 12)),
        (lambda: relay.transpose(_var(ANY, 3, 4), (2, 0, 1)), (4, ANY, 3)),
        (lambda: relay.squeeze(_var(ANY, 1, ANY), [1, 2]), (ANY,)),
        (lambda: relay.expand_dims(_var(ANY, 3), 1), (ANY, 1, 3)),
        (lambda: relay.concatenate([_var(ANY, 3), _var(2, 3)], 0), (ANY, 3)),
        (lambda: relay.concatenate([_var(ANY, 1), _var(2, ANY)], 0), (ANY, 1)),
        (lambda: relay.stack([_var(ANY, 3), _var(2, ANY)], 0), (2, 2, 3)),
        (lambda: relay.split(_var(ANY, 6), (2, 3), 0)[1], (1, 6)),
        (lambda: relay.split(_var(ANY, 6), 2, 0)[0], (ANY, 6)),
        (lambda: relay.strided_slice(_var(ANY, 6), [1, 1], [3, 3]), (ANY, 2)),
        (lambda: relay.take(_var(ANY, 6), _var(ANY, 2, dtype="int32"), axis=1), (ANY, ANY, 2)),
        (lambda: relay.gather_nd(_var(5, ANY), _var(ANY, 3, dtype="int32"), index_rank=1), (3, ANY)),
        (lambda: relay.tile(_var(ANY, 6), (2, 2)), (ANY, 12)),
        (lambda: relay.repeat(_var(ANY, 6), 2, 1), (ANY, 12)),
        (lambda: relay.layout_transform(_var(ANY, 8, 3, 3), "NCHW", "NCHW4c"), (ANY, 2, 3, 3, 4)),
        (lambda: relay.broadcast_to_like(_var(3, 1), _var(ANY, 3, 4)), (ANY, 3, 4)),
        (lambda: relay.where(_var(ANY, dtype="bool"), _var(3), _var()), (3,)),
        (lambda: relay.cumsum(_var(2, ANY)), (ANY,)),
        (lambda: relay.argwhere(_var(2, 3, 4)), (ANY, 3)),
        (lambda: relay.slice_like(_var(ANY, 6), _var(4, 3)), (4, 3)),
        (lambda: relay.reshape(_var(2, 6), _var(3, dtype="int64")), (ANY, ANY, ANY)),
        (lambda: relay.reshape(_var(2, 6), relay.const([3, -1])), (3, 4)),
        (lambda: relay.tile(_var(2, 6), relay.const([3, 1])), (6, 6)),
        (lambda: relay.full(relay.const(1.0), relay.const([2, 3])), (2, 3)),
        (lambda: relay.zeros(relay.const([2, 3]), "float32"), (2, 3)),
        (lambda: relay.broadcast_to(_var(3), relay.const([2, 3])), (2, 3)),
        (lambda: relay.strided_slice(_var(4, 3), relay.const([1]), relay.const([3])), (2, 3)),
        (lambda: relay.expand_dims(_var(4, 3), relay.const(1)), (4, 1, 3)),
        (lambda: relay.arange(relay.const(1), relay.const(7), relay.const(2), "int32"), (3,)),
        (lambda: relay.strided_slice(_var(4, ANY), _var(1, dtype="int64"), relay.const([3])), (ANY, ANY)),
    ],
)  # fmt: skip
def test_what_is_known_stays_known(build: Callable[[], Any], shape: tuple[Any, ...]) -> None:
    """Only what follows from an unknown dimension is unknown, and constants choose the operator with attributes."""
    found = _type(build())
    assert found == TensorType(shape, found.dtype)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: relay.reshape(_var(2, 3), (4,)), "6 elements do not become 4"),
        (lambda: relay.transpose(_var(2, 3), (0, 0)), "not a permutation of 2 axes"),
        (lambda: relay.squeeze(_var(2, 1), [0]), "is not one"),
        (lambda: relay.squeeze(_var(ANY, 1)), "give the axes"),
        (lambda: relay.expand_dims(_var(2), 3), "axis 3 is out of range"),
        (lambda: relay.concatenate([_var(2, 3), _var(2, 4)], 0), "3 is not 4"),
        (lambda: relay.concatenate([_var(2), _var(2, dtype="int32")], 0), "element types"),
        (lambda: relay.stack([_var(2), _var(3)], 0), "2 is not 3"),
        (lambda: relay.split(_var(5), 2)[0], "has not 2 equal parts"),
        (lambda: relay.split(_var(5), (3, 2))[0], "do not rise"),
        (lambda: relay.split(_var(5), (7,))[0], "beyond a dimension of 5"),
        (lambda: relay.strided_slice(_var(5), [0, 0], [1, 1]), "2 begins or ends for 1"),
        (lambda: relay.strided_slice(_var(5), [0], [1, 1], axes=[0]), "1 axes"),
        (lambda: relay.take(_var(5), _var(2)), "integers, not float32"),
        (lambda: relay.gather(_var(5, 2), 0, _var(2, 3, dtype="int32")), "more than 2"),
        (lambda: relay.gather_nd(_var(5), _var(2, 3, dtype="int32")), "do not index"),
        (lambda: relay.scatter(_var(5), _var(2, dtype="int32"), _var(3), 0), "2 is not 3"),
        (lambda: relay.scatter_nd(_var(5), _var(1, 3, dtype="int32"), _var(2)), "3 is not 2"),
        (lambda: relay.broadcast_to(_var(3, 2), (3, 3)), "does not fit"),
        (lambda: relay.collapse_sum_like(_var(3, 2), _var(3, 3)), "does not fit"),
        (lambda: relay.layout_transform(_var(2, 3), "NC", "NC2c"), "does not divide by 2"),
        (lambda: relay.layout_transform(_var(2, 3), "NC", "NHC"), "can not have the layout"),
        (lambda: relay.reinterpret(_var(2), "int8"), "not as wide"),
        (lambda: relay.reverse_sequence(_var(2, 3), _var(3, dtype="int32")), "3 is not 2"),
        (lambda: relay.sequence_mask(_var(2, 3), _var(2, dtype="int32")), "2 is not 3"),
        (lambda: relay.matrix_set_diag(_var(3, 4), _var(4)), "4 is not 3"),
        (lambda: relay.unique(_var(3, 4))[0], "takes a vector"),
        (lambda: relay.one_hot(_var(3), relay.const(1.0), relay.const(0.0), 3, -1, "float32"), "integers"),
        (lambda: relay.slice_like(_var(3), _var(4)), "4 elements can not be cut from 3"),
        (lambda: relay.tile(_var(3), (0,)), "once or more"),
        (lambda: relay.arange(1, 5, 0), "step is zero"),
        (lambda: relay.where(_var(2, dtype="bool"), _var(2), _var(2, dtype="int32")), "element types"),
        (lambda: relay.reshape(_var(2, 3), _var(ANY, dtype="int64")), "must be constant"),
        (lambda: relay.sparse_to_dense(_var(2, 3, dtype="int32"), (4, 4), _var(2)), "3 is not 2"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_an_error(build: Callable[[], Any], message: str) -> None:
    """A type error says what does not fit."""
    with pytest.raises(TypeInferenceError, match=message):
        _type(build())


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: relay.strided_slice(_var(5), [0], [1], [0]), "stride is zero"),
        (lambda: relay.strided_slice(_var(5), [0], [1], slice_mode="middle"), "'end' or 'size'"),
        (lambda: relay.strided_slice(_var(5), _var(1), [1], axes=[0]), "takes axes only"),
        (lambda: relay.take(_var(5), _var(1), mode="raise"), "'clip', 'wrap' or 'fast'"),
        (lambda: relay.scatter_nd(_var(5), _var(1), _var(1), "multiply"), "one of update, add"),
        (lambda: relay.meshgrid([]), "one tensor or more"),
        (lambda: relay.meshgrid([_var(1)], "ji"), "'ij' or 'xy'"),
        (lambda: relay.split(_var(5), 0), "one part or more"),
        (lambda: relay.reshape(_var(5), (2.5,)), "takes integers"),
        (lambda: relay.where(True, _var(5), _var(5)), "graph expressions"),
        (lambda: relay.matrix_set_diag(_var(2, 2), _var(2), align="UP_DOWN"), "two of LEFT and RIGHT"),
    ],
)
def test_wrong_attributes_are_refused_at_once(build: Callable[[], Any], message: str) -> None:
    """What no argument could make right is an error where the call is written."""
    with pytest.raises(ExpressionError, match=message):
        build()


def test_gradients_that_are_missing_say_so() -> None:
    """The gradient of take by batches is not there, and that is what the error says."""
    data, indices = _var(2, 4, 3), _var(2, 2, dtype="int32")
    made = infer_expr(relay.take(data, indices, axis=1, batch_dims=1))
    with pytest.raises(TilewrightError, match="gradient of take with batch_dims"):
        made.op.get_attr("FPrimalGradient")(made, made)
