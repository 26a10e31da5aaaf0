"""Specialisation of functions."""

import pytest

from tilewright.ir.buffer import BufferRegion, decl_buffer
from tilewright.ir.expr import IterVar, Range, SizeVar, Var
from tilewright.ir.functor import uses_var
from tilewright.support.errors import ExpressionError
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import Block, BlockRealize, BufferStore, For


def copy_function() -> tuple[PrimFunc, Var, Var]:
    """B[i, j] = A[i, j] + k over a symbolic shape, with a scalar parameter."""
    m, n, k = SizeVar("m", "int32"), SizeVar("n", "int32"), Var("k", "float32")
    source, target = decl_buffer((m, n), name="A"), decl_buffer((m, n), name="B")
    i, j = Var("i"), Var("j")
    body = For(i, 0, m, 0, For(j, 0, n, 0, BufferStore(target, source[i, j] + k, [i, j])))
    return PrimFunc([source, target, k], body), m, n


def test_buffer() -> None:
    """The shape of a given buffer fixes the variables of the parameter's shape, wherever they stand."""
    function, m, n = copy_function()
    made = function.specialize({function.params[0]: decl_buffer((8, 16))})
    assert made.params == function.params
    for parameter in made.params[:2]:
        assert [extent.value for extent in made.buffer_map[parameter].shape] == [8, 16]
    assert made.body.extent.value == 8 and made.body.body.extent.value == 16
    assert not uses_var(made.body, [m, n])
    store = made.body.body.body
    assert (
        store.buffer is made.buffer_map[made.params[1]]
        and store.value.a.buffer is made.buffer_map[made.params[0]]
    )
    assert uses_var(function.body, m), "the function itself stays as it was"


def test_partly() -> None:
    """A given buffer with a symbolic dimension keeps that one open."""
    function, m, _ = copy_function()
    other = SizeVar("x", "int32")
    made = function.specialize({function.params[0]: decl_buffer((other, 16))})
    assert made.body.extent is other and made.body.body.extent.value == 16 and not uses_var(made.body, m)


def test_scalar() -> None:
    """A scalar parameter with a value goes away."""
    function, _, _ = copy_function()
    made = function.specialize({function.params[2]: 3})
    assert made.params == function.params[:2]
    assert str(made.body.body.body.value) == "A[i, j] + 3.0"


def test_blocks() -> None:
    """Regions and buffers of blocks are specialised too."""
    n = SizeVar("n", "int32")
    source, target = decl_buffer((n,), name="A"), decl_buffer((n,), name="B")
    temporary = decl_buffer((n,), name="tmp")
    axis, loop = IterVar((0, n), "vi", IterVar.DataPar), Var("i")
    regions = [BufferRegion(source, (Range.from_min_extent(0, n),))]
    body = BufferStore(target, source[axis.var], [axis.var])
    block = Block([axis], regions, [], "copy", body, alloc_buffers=[temporary])
    function = PrimFunc([source, target], For(loop, 0, n, 0, BlockRealize([loop], True, block)))
    made = function.specialize({function.params[0]: decl_buffer((8,))})
    inner = made.body.body.block
    assert inner.alloc_buffers[0].shape[0].value == 8 and inner.iter_vars[0].dom.extent.value == 8
    assert inner.reads[0].region[0].extent.value == 8
    assert inner.reads[0].buffer is made.buffer_map[made.params[0]]


def test_buffer_describes_a_place_only() -> None:
    """The type of the elements stays the function's, and sizes that follow from the given ones are computed."""
    n = Var("n")
    source, target = decl_buffer((n // 8, 8), "int8"), decl_buffer((n,), "int8")
    i = Var("i")
    body = For(i, 0, n - 1, 0, BufferStore(target, source[i // 8, i % 8], [i]))
    function = PrimFunc([source, target], body)
    made = function.specialize({function.params[1]: decl_buffer([16])})
    first, second = (made.buffer_map[param] for param in made.params)
    assert [extent.value for extent in (*first.shape, *second.shape)] == [2, 8, 16]
    assert second.dtype == "int8" and made.body.extent.value == 15


def test_errors() -> None:
    """What cannot be is refused with the parameter and the reason."""
    function, _, _ = copy_function()
    a, b, k = function.params
    with pytest.raises(ExpressionError, match="is not a parameter of the function; it has A, B, k"):
        function.specialize({Var("z"): 1})
    with pytest.raises(ExpressionError, match="has 2 dimensions, the given buffer 1"):
        function.specialize({a: decl_buffer((8,))})
    with pytest.raises(ExpressionError, match="m cannot be both 8 and 4"):
        function.specialize({a: decl_buffer((8, 8)), b: decl_buffer((4, 8))})
    with pytest.raises(ExpressionError, match="is a scalar"):
        function.specialize({k: decl_buffer((8,))})
    with pytest.raises(ExpressionError, match="is bound to a buffer"):
        function.specialize({a: 5})
    fixed = function.specialize({a: decl_buffer((8, 16))})
    with pytest.raises(ExpressionError, match="8 cannot be specialised to 4"):
        fixed.specialize({a: decl_buffer((4, 16))})
