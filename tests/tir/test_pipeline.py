"""The lowering line: from buffers and scheduled loops to flat, vectorized, unguarded loops."""

import time

import numpy as np
import pytest

from tilewright import tir
from tilewright.ir.expr import Range
from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext, Sequential
from tilewright.support.errors import LoweringError, TilewrightError
from tilewright.tir.interpreter import interpret
from tilewright.tir.op import likely
from tilewright.tir.pipeline import lowering_passes


def lowered(function, simple_mode=False):
    """The function after lowering."""
    module = Sequential(lowering_passes(simple_mode))(IRModule.from_expr(function))
    (made,) = module.functions.values()
    return made


def nodes_of(function, kind):
    """The distinct nodes of a class in a function."""
    return [found for found in post_order(function.body) if isinstance(found, kind)]


def loop(name, extent, body, kind=tir.ForKind.SERIAL):
    """A loop around ``body(variable)``."""
    variable = tir.Var(name, "int32")
    return tir.For(variable, 0, extent, kind, body(variable))


def tiled_product(n, m, depth, rows=6, columns=16, steps=4):
    """C = A times B in register tiles: a tile is accumulated in a buffer of its own and written back."""
    a, b = tir.decl_buffer((n, depth), name="A"), tir.decl_buffer((depth, m), name="B")
    c, tile = tir.decl_buffer((n, m), name="C"), tir.decl_buffer((n, m), name="C.global")
    unrolled, vectorized = tir.ForKind.UNROLLED, tir.ForKind.VECTORIZED

    def within(i, j, stmt):
        conditions = []
        if n % rows:
            conditions.append(likely(i < n))
        if m % columns:
            conditions.append(likely(j < m))
        return tir.IfThenElse(tir.all(*conditions), stmt) if conditions else stmt

    def one_tile(io, jo):
        def clear(x, y):
            return tir.BufferStore(tile, 0.0, [io * rows + x, jo * columns + y])

        def update(k, x, y):
            i, j = io * rows + x, jo * columns + y
            return within(i, j, tir.BufferStore(tile, tile[i, j] + a[i, k] * b[k, j], [i, j]))

        def write(x, y):
            i, j = io * rows + x, jo * columns + y
            return within(i, j, tir.BufferStore(c, tile[i, j], [i, j]))

        def vector(body):
            return loop("x", rows, lambda x: loop("y", columns, lambda y: body(x, y), vectorized), unrolled)

        inner = loop(
            "ko",
            depth // steps,
            lambda ko: loop(
                "ki", steps, lambda ki: vector(lambda x, y: update(ko * steps + ki, x, y)), unrolled
            ),
        )
        box = [Range.from_min_extent(io * rows, rows), Range.from_min_extent(jo * columns, columns)]
        return tir.BufferRealize(tile, box, True, tir.SeqStmt([vector(clear), inner, vector(write)]))

    body = loop(
        "io",
        -(-n // rows),
        lambda io: loop("jo", -(-m // columns), lambda jo: one_tile(io, jo)),
        tir.ForKind.PARALLEL,
    )
    return tir.PrimFunc([a, b, c], body)


def product_agrees(function, n, m, depth):
    """True if the function multiplies matrices of small integers."""
    rng = np.random.default_rng(0)
    a, b = (
        rng.integers(-4, 5, (n, depth)).astype("float32"),
        rng.integers(-4, 5, (depth, m)).astype("float32"),
    )
    c = np.zeros((n, m), "float32")
    interpret(function, a, b, c)
    return np.array_equal(c, a @ b)


def test_tile_that_divides():
    """Without a rest every access of the inner loop is a vector of stride one, and nothing is checked."""
    after = lowered(tiled_product(12, 32, 8))
    assert not nodes_of(after, tir.IfThenElse) and not nodes_of(after, tir.BufferLoad)
    assert {ramp.stride.value for ramp in nodes_of(after, tir.Ramp)} == {1}
    (tile,) = nodes_of(after, tir.Allocate)
    assert tile.extents[0].value == 96 and tile.dtype == "float32"
    assert isinstance(after.body, tir.For) and after.body.kind == tir.ForKind.PARALLEL
    assert isinstance(after.body.body, tir.Allocate)
    assert product_agrees(after, 12, 32, 8)


@pytest.mark.parametrize(("n", "m"), [(13, 32), (12, 40), (17, 23), (3, 5)])
def test_tile_that_does_not_divide(n, m):
    """With a rest the guards are moved out of the vectors, and the result is the same."""
    after = lowered(tiled_product(n, m, 8))
    assert product_agrees(after, n, m, 8)
    stores = [store for store in nodes_of(after, tir.Store) if store.value.dtype.lanes == 1]
    assert not stores


def test_lowering_is_quick():
    """A 6 by 16 register tile with the reduction unrolled by four lowers in 0.1 s, tripled for slow machines."""
    function = tiled_product(1026, 1024, 1024)
    lowered(function)
    times = []
    for _ in range(3):
        start = time.process_time()
        lowered(function)
        times.append(time.process_time() - start)
    assert min(times) < 0.3


def test_simple_mode_keeps_loops_whole():
    """``simple_mode`` does not split loops."""
    function = tiled_product(13, 32, 8)
    assert len(nodes_of(lowered(function, True), tir.For)) < len(nodes_of(lowered(function), tir.For))


def test_vectorization_can_be_switched_off():
    """``tir.disable_vectorize`` leaves serial loops."""
    with PassContext(config={"tir.disable_vectorize": True}):
        after = lowered(tiled_product(12, 32, 8))
    assert not nodes_of(after, tir.Ramp) and product_agrees(after, 12, 32, 8)


def test_bound_checkers():
    """``tir.instrument_bound_checkers`` finds an access outside its buffer."""
    a, b = tir.decl_buffer((8,), "int32", "A"), tir.decl_buffer((8,), "int32", "B")
    function = tir.PrimFunc([a, b], loop("i", 8, lambda i: tir.BufferStore(b, a[i + 1], [i])))
    with PassContext(config={"tir.instrument_bound_checkers": True}):
        after = lowered(function)
    with pytest.raises(TilewrightError, match="buffer A has 8 elements, index 8 was accessed"):
        interpret(after, np.zeros(8, "int32"), np.zeros(8, "int32"))


def test_added_passes_run_in_their_phase():
    """``tir.add_lower_pass`` takes pairs of phase and pass or function."""
    seen = []

    def look(module, context):
        (function,) = module.functions.values()
        seen.append(bool(nodes_of(function, tir.BufferStore)))
        return module

    with PassContext(config={"tir.add_lower_pass": [(0, look), (1, look), (3, look)]}):
        lowered(tiled_product(12, 32, 8))
    assert seen == [True, False, False]
    with (
        PassContext(config={"tir.add_lower_pass": [look]}),
        pytest.raises(LoweringError, match="pairs of phase"),
    ):
        lowering_passes()
