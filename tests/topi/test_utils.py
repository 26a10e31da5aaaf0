"""Helpers of operators and schedules."""

import numpy as np
import pytest
from tests.topi.running import evaluate

import tilewright as tvm
from tilewright import te, topi
from tilewright.topi import utils


def test_constants():
    """Constants come out of expressions, after simplification where needed."""
    n = te.var("n")
    assert utils.get_const_int(tvm.tir.const(4)) == 4
    assert utils.get_const_int(n - n + 3) == 3
    assert utils.get_const_float(tvm.tir.const(1.5)) == 1.5
    assert utils.get_const_tuple((1, tvm.tir.const(2), n, tvm.tir.const(2) * 3)) == (1, 2, n, 6)
    assert utils.get_float_tuple((1.0, tvm.tir.const(2.5))) == (1.0, 2.5)
    assert utils.equal_const_int(n - n, 0) and not utils.equal_const_int(n, 0)
    with pytest.raises(utils.InvalidShapeError, match="constant integer"):
        utils.get_const_int(n)
    with pytest.raises(ValueError, match="constant floating"):
        utils.get_const_float(n)


def test_any_dimension_becomes_a_variable():
    """A wildcard in a shape gets a name."""
    (extent,) = utils.get_const_tuple((tvm.tir.Any(),))
    assert isinstance(extent, tvm.tir.Var)


def test_indices():
    """Positions and index vectors."""
    assert utils.ravel_index([1, 2, 3], [2, 3, 4]) == 23
    assert [utils.get_const_int(index) for index in utils.unravel_index(tvm.tir.const(23), [2, 3, 4])] == [
        1,
        2,
        3,
    ]
    assert utils.ravel_index([], []) == 0


@pytest.mark.parametrize(
    ("begin", "end", "stride"), [(1, 7, 2), (0, 8, 1), (6, 0, -2), (7, -1, -1), (3, 3, 1)]
)
def test_selected_indices(begin, end, stride):
    """within_index and make_idx agree with Python's range."""
    chosen = list(range(begin, end, stride))
    for index in range(8):
        inside = utils.get_const_int(utils.simplify(utils.within_index(begin, end, stride, index)))
        assert bool(inside) == (index in chosen)
        if index in chosen:
            place = utils.get_const_int(utils.simplify(utils.make_idx(begin, end, stride, 8, index)))
            assert place == chosen.index(index)


def test_constant_tensors():
    """Constants written into the program."""
    vector, matrix = np.array([3, 1, 2], "int32"), np.array([[1.5, -2], [0, 4]], "float32")
    np.testing.assert_array_equal(evaluate(utils.const_vector(vector), {}), vector)
    np.testing.assert_array_equal(evaluate(utils.const_matrix(matrix), {}), matrix)
    with pytest.raises(utils.InvalidShapeError, match="2 dimensions"):
        utils.const_matrix(vector)


def test_numbers():
    """Powers of two, quotients rounded up, products."""
    assert [utils.get_max_power2_factor(n) for n in (1, 6, 16, 40)] == [1, 2, 16, 8]
    assert utils.get_max_power2_factor(64, 8) == 8
    assert utils.ceil_div(7, 2) == 4 and utils.get_const_int(utils.ceil_div(tvm.tir.const(7), 2)) == 4
    assert utils.prod([2, 3, 4]) == 24 and utils.get_const_int(utils.prod([])) == 1
    assert utils.swap([1, 2, 3], 0) == [3, 2, 1]
    assert utils.is_empty_shape((2, 0)) and not utils.is_empty_shape((te.var("n"), 1))


def test_layout_names():
    """Which layouts are blocked, and the shape in another one."""
    assert utils.nchw_xc_layout("NCHW16c") and not utils.nchw_xc_layout("NCHW")
    assert utils.nchw_pack_layout("NCHW1n16c") and not utils.nchw_pack_layout("NCHW16c")
    assert utils.ncw_xc_layout("NCW8c") and utils.ncw_pack_layout("NCW1n8c")
    assert utils.get_shape((1, 32, 7, 7), "NCHW", "NCHW16c") == (1, 2, 7, 7, 16)
    with pytest.raises(utils.InvalidShapeError, match="cannot have the layout"):
        utils.get_shape((1, 2), "NC", "NCW")


def test_traverse_inline():
    """Injective stages above the output are inlined; every operation is met once, inputs first."""
    a = te.placeholder((4, 4), name="a")
    doubled = topi.multiply(a, 2.0)
    total = topi.sum(doubled, axis=1)
    shifted = topi.add(total, 1.0)
    out = topi.multiply(shifted, shifted)
    schedule = te.create_schedule(out.op)
    met = []
    utils.traverse_inline(schedule, out.op, met.append)
    assert met == [total.op, shifted.op, out.op]
    function = tvm.build(schedule, [a, out], "llvm")
    result = tvm.nd.empty((4,))
    function(tvm.nd.array(np.ones((4, 4), "float32")), result)
    np.testing.assert_array_equal(result.numpy(), np.full(4, 81))
    assert "T_add" not in str(tvm.lower(schedule, [a, out]))
