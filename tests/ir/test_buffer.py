"""Buffers."""

import pytest

from tilewright.ir import operators
from tilewright.ir.buffer import DEFAULT_ALIGNMENT, decl_buffer
from tilewright.ir.expr import BufferLoad, Ramp, SizeVar, Var
from tilewright.support.errors import ExpressionError
from tilewright.tir.stmt import BufferStore


def test_defaults() -> None:
    """What is not given is compact, aligned, global, and starts at zero."""
    n = SizeVar("n", "int32")
    buffer = decl_buffer((n, 4), "float16", name="A")
    assert buffer.name == "A" and buffer.dtype == "float16" and buffer.shape[0] is n
    assert buffer.strides == () and str(buffer.elem_offset) == "0"
    assert buffer.data_alignment == DEFAULT_ALIGNMENT == 128 and buffer.offset_factor == 1
    assert buffer.scope() == "global" and buffer.data.name == "A"
    assert decl_buffer((4,), scope="shared").scope() == "shared"
    assert decl_buffer(4).shape[0].value == 4  # type: ignore[attr-defined]


def test_offset_variable() -> None:
    """A factor of the offset makes the offset a variable."""
    buffer = decl_buffer((4,), name="B", offset_factor=8)
    assert isinstance(buffer.elem_offset, Var) and buffer.offset_factor == 8


def test_flat_offsets() -> None:
    """Elements lie row-major, or as the strides say, after the offset."""
    i, j, s = Var("i"), Var("j"), Var("s")
    assert str(decl_buffer((8, 16)).offset_of([i, j])) == "i * 16 + j"
    assert str(decl_buffer((8, 16), strides=[s, 1]).offset_of([i, j])) == "i * s + j"
    assert str(decl_buffer((8,), elem_offset=s).offset_of([i])) == "s + i"
    assert str(decl_buffer(()).offset_of([])) == "0"


def test_vector_access() -> None:
    """A vector type loads and stores consecutive elements of the last dimension."""
    i = Var("i")
    buffer = decl_buffer((8, 16), "float32")
    load = buffer.vload([i, 4], "float32x4")
    assert isinstance(load, BufferLoad) and load.dtype == "float32x4" and isinstance(load.indices[1], Ramp)
    store = buffer.vstore([i, 0], operators.const(1.0, "float32x8"))
    assert isinstance(store, BufferStore) and store.indices[1].dtype == "int32x8"
    assert buffer.vload([i, 0]).dtype == "float32" and str(buffer.vload([i, 2]).index) == "i * 16 + 2"
    with pytest.raises(ExpressionError, match="holds float32, not int32x4"):
        buffer.vload([i, 0], "int32x4")
    with pytest.raises(ExpressionError, match="has 2 dimensions, 1 indices"):
        buffer.vload([i])


def test_access_pointers() -> None:
    """A pointer says what it is for, where it starts and how far it reaches."""
    buffer = decl_buffer((8, 16), "float32", name="A")
    pointer = buffer.access_ptr("rw", offset=4)
    assert (
        str(pointer) == 'T.tvm_access_ptr(T.type_annotation(dtype="float32"), A, 4, 124, 3, dtype="handle")'
    )
    vectors = buffer.access_ptr("r", content_lanes=4)
    assert 'dtype="float32x4"' in str(vectors) and ", 0, 32, 1" in str(vectors)
    with pytest.raises(ExpressionError, match="letters r and w"):
        buffer.access_ptr("x")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shape": (-1,)}, "negative extent"),
        ({"shape": (1.5,)}, "not an integer"),
        ({"shape": ("n",)}, "not an integer"),
        ({"shape": (4, 4), "strides": [1]}, "2 dimensions and 1 strides"),
    ],
)
def test_bad_buffers(arguments: dict[str, object], message: str) -> None:
    """A buffer that cannot be is refused."""
    with pytest.raises(ExpressionError, match=message):
        decl_buffer(**arguments)  # type: ignore[arg-type]


def test_buffers_are_equal_by_identity() -> None:
    """Two buffers with the same fields are two."""
    assert decl_buffer((4,)) != decl_buffer((4,))
