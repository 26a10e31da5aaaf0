"""Shape functions of operators whose shapes the program computes: they stop where the arguments do not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay, te
from tilewright.support.errors import RuntimeFailure


def computed_shapes(name: str, out_ndims: list[int], *arguments: Any, **attributes: Any) -> list[Any]:
    """Compile an operator's shape function and run it: arguments are shapes (tuples) and data (arrays)."""
    op = relay.op.get(name)
    kind = op.get_attr("AttrsClass")
    values = [np.asarray(one, "int64") if isinstance(one, tuple) else one for one in arguments]
    inputs = [te.placeholder(one.shape, str(one.dtype), f"x{n}") for n, one in enumerate(values)]
    attrs = None if kind is None else kind(**attributes)
    outputs = op.get_attr("FShapeFunc")(attrs, inputs, out_ndims)
    built = tvm.build(te.create_schedule([one.op for one in outputs]), [*inputs, *outputs], "llvm")
    results = [tvm.nd.array(np.zeros((rank,), "int64")) for rank in out_ndims]
    built(*[tvm.nd.array(one) for one in values], *results)
    return [tuple(one.numpy().tolist()) for one in results]


def _ints(*values: Any) -> Any:
    return np.asarray(values, "int64")


WRONG: list[tuple[str, int, tuple[Any, ...], dict[str, Any], str]] = [
    ("dyn.reshape", 2, ((2, 3), _ints(4, 2)), {}, "another number of elements"),
    ("dyn.reshape", 2, ((2, 3), _ints(4, -1)), {}, "do not divide"),
    ("dyn.reshape", 2, ((2, 3), _ints(-1, -1)), {}, "-1 occurs twice"),
    ("dyn.reshape", 3, ((2, 3), _ints(0, 0, 0)), {}, "no dimension is left"),
    ("dyn.reshape", 2, ((2, 3), _ints(-2, 1)), {}, "positive numbers, 0, -1 and -3"),
    ("dyn.reshape", 2, ((0, 3), _ints(0, -1)), {"allowzero": True}, "can be anything"),
    ("dyn.expand_dims", 3, ((2, 3), _ints(3)), {}, "axis is out of range"),
    ("dyn.expand_dims", 3, ((2, 3), _ints(-4)), {}, "axis is out of range"),
    ("dyn.squeeze", 1, ((2, 1), _ints(0)), {}, "is not one"),
    ("dyn.squeeze", 1, ((1, 1), _ints(2)), {}, "out of range, or occurs twice"),
    ("dyn.squeeze", 0, ((1, 1), _ints(0, 0)), {}, "out of range, or occurs twice"),
    ("dyn.broadcast_to", 2, ((3, 1), _ints(4, 4)), {}, "neither 1 nor"),
    ("dyn.tile", 1, ((3,), _ints(0)), {}, "once or more"),
    ("dyn.strided_slice", 1, ((3,), _ints(0), _ints(3), _ints(0)), {}, "stride is zero"),
    ("dyn.one_hot", 2, ((3,), (), (), _ints(0)), {}, "less than one"),
    ("dyn.topk", 1, ((3,), _ints(4)), {"ret_type": "values"}, "more elements are requested"),
    ("dyn.nn.pad", 1, ((3,), _ints([-4, 0]), ()), {}, "taken away"),
    ("dyn.nn.pad", 1, ((3,), _ints([3, 0]), ()), {"pad_mode": "reflect"}, "wider than the data"),
    ("dyn.nn.pad", 1, ((3,), _ints([-1, 0]), ()), {"pad_mode": "edge"}, "width is negative"),
    ("arange", 1, (_ints(0)[0], _ints(5)[0], _ints(0)[0]), {}, "step is zero"),
    ("arange", 1, (np.float32(0), np.float32(5), np.float32(0)), {}, "step is zero"),
    ("dyn.image.resize2d", 4, ((1, 1, 3, 3), _ints(0, 3)), {}, "less than one"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "rank", "arguments", "attributes", "message"), WRONG)
def test_arguments_that_do_not_fit_stop_the_program(
    name: str, rank: int, arguments: tuple[Any, ...], attributes: dict[str, Any], message: str
) -> None:
    """A computed shape that makes no sense is an error when it is computed, with the reason."""
    with pytest.raises(RuntimeFailure, match=message):
        computed_shapes(name, [rank], *arguments, **attributes)


def test_codes_of_a_computed_shape() -> None:
    """Codes have the meaning that they have as attributes."""
    assert computed_shapes("dyn.reshape", [3], (2, 3, 4), _ints(0, -1, 2)) == [(2, 6, 2)]
    assert computed_shapes("dyn.reshape", [2], (2, 3, 4), _ints(-3, -1)) == [(6, 4)]
    assert computed_shapes("dyn.reshape", [2], (3, 0), _ints(0, 5), allowzero=True) == [(0, 5)]
    assert computed_shapes("dyn.reshape", [0], (1, 1), np.zeros(0, "int64")) == [()]


def test_both_results_of_topk_have_the_computed_size() -> None:
    """One vector for the values and one for their positions; less than one asks for all."""
    assert computed_shapes("dyn.topk", [2, 2], (4, 5), _ints(2), axis=0) == [(2, 5), (2, 5)]
    assert computed_shapes("dyn.topk", [2, 2], (4, 5), _ints(-1), axis=0) == [(4, 5), (4, 5)]
