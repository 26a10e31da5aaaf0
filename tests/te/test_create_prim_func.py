"""Functions of blocks from tensor expressions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.te.programs import PROGRAMS

import tilewright as tvm
from tilewright import te, tir
from tilewright.support.errors import LoweringError
from tilewright.tir.interpreter import interpret


def blocks(function: tir.PrimFunc) -> dict[str, tir.Block]:
    """The blocks of a function by name."""
    found: list[Any] = []
    tir.stmt_functor.post_order_visit(function.body, found.append)
    return {one.name_hint: one for one in found if isinstance(one, tir.Block)}


@pytest.mark.parametrize("make", PROGRAMS, ids=lambda make: make.__name__)
def test_every_program_runs(make: Any) -> None:
    """By interpretation, and lowered to machine code."""
    program = make()
    function = te.create_prim_func(program.arguments)
    arrays = program.arrays(5)
    interpret(function, *arrays)
    program.check(arrays)
    arrays = program.arrays(6)
    tvm.build(function, target="llvm")(*arrays)
    program.check(arrays)


def test_the_blocks_of_a_product() -> None:
    """A block with data and reduction axes, an initialisation, and what it reads and writes."""
    a, b = te.placeholder((8, 6), name="A"), te.placeholder((6, 4), name="B")
    k = te.reduce_axis((0, 6), name="k")
    c = te.compute((8, 4), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C", attrs={"note": 1})
    function = te.create_prim_func([a, b, c])
    assert function.attrs["global_symbol"] == "main"
    assert [buffer.name for buffer in function.buffer_map.values()] == ["A", "B", "C"]
    found = blocks(function)
    assert set(found) == {"root", "C"}
    block = found["C"]
    assert [axis.dom.extent.value for axis in block.iter_vars] == [8, 4, 6]
    assert [axis.iter_type for axis in block.iter_vars] == [tir.IterVar.DataPar] * 2 + [
        tir.IterVar.CommReduce
    ]
    assert block.init is not None
    assert [region.buffer.name for region in block.reads] == ["C", "A", "B"]
    assert [region.buffer.name for region in block.writes] == ["C"]
    assert block.annotations["note"] == 1


def test_intermediate_tensors_are_allocated() -> None:
    """They live in the root block."""
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((8,), lambda i: b[i] * 2.0, name="C")
    root = blocks(te.create_prim_func([a, c]))["root"]
    assert [buffer.name for buffer in root.alloc_buffers] == ["B"]
    assert blocks(te.create_prim_func([a, b, c]))["root"].alloc_buffers == ()


def test_statements_become_blocks() -> None:
    """An extern works on the buffers themselves."""
    a = te.placeholder((6,), name="A")

    def body(ins: list[tir.Buffer], outs: list[tir.Buffer]) -> tir.Stmt:
        builder = tir.ir_builder.create()
        source, target = builder.buffer_ptr(ins[0]), builder.buffer_ptr(outs[0])
        with builder.for_range(0, 6, "i") as i:
            target[i] = source[5 - i]
        return builder.get()

    b = te.extern((6,), [a], body, name="B")
    c = te.compute((6,), lambda i: b[i] + 1.0, name="C")
    function = te.create_prim_func([a, c])
    values, result = np.arange(6, dtype="float32"), np.zeros(6, "float32")
    interpret(function, values, result)
    assert result.tolist() == [6, 5, 4, 3, 2, 1]


def test_inputs_found_from_outputs() -> None:
    """They stand before the outputs, in the order that the outputs need them."""
    a, b = te.placeholder((4,), name="A"), te.placeholder((4,), name="B")
    c = te.compute((4,), lambda i: b[i] - a[i], name="C")
    function = te.create_prim_func_from_outputs(c)
    assert [buffer.name for buffer in function.buffer_map.values()] == ["B", "A", "C"]


def test_one_box_for_each_buffer() -> None:
    """A buffer that is read at several places is one read of the block, of the box around them."""
    a, b = te.placeholder((10,), name="A"), te.placeholder((8,), name="B")
    c = te.compute((8,), lambda i: a[i] * a[i + 2] + b[i] * b[i], name="C")
    block = te.create_prim_func([a, b, c]).body.block.body.body.block
    boxes = [(one.buffer.name, str(one.region[0].min), int(one.region[0].extent)) for one in block.reads]
    assert boxes == [("A", "v_i", 3), ("B", "v_i", 1)]


def test_the_text_reads_back() -> None:
    """What it prints is parsed to the same function."""
    a = te.placeholder((8, 6), name="A")
    k = te.reduce_axis((0, 6), name="k")
    c = te.compute((8,), lambda i: te.max(a[i, k], axis=k), name="C")
    function = te.create_prim_func([a, c])
    tvm.ir.assert_structural_equal(tvm.script.from_source(function.script()), function)


def test_mistakes_are_refused() -> None:
    """A missing input, other objects, and operations without a block form."""
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: a[i], name="B")
    with pytest.raises(LoweringError, match="input A is not among the arguments"):
        te.create_prim_func([b])
    with pytest.raises(LoweringError, match="takes tensors, not 3"):
        te.create_prim_func([a, 3])  # type: ignore[list-item]
    x, state = te.placeholder((4, 2), name="X"), te.placeholder((4, 2), name="S")
    init = te.compute((1, 2), lambda t, i: x[0, i], name="init")
    update = te.compute((4, 2), lambda t, i: state[t - 1, i] + x[t, i], name="update")
    scan = te.scan(init, update, state, inputs=[x], name="scan")
    with pytest.raises(LoweringError, match="ScanOp, which has no block form|not among the arguments"):
        te.create_prim_func([x, scan])
