"""Kernels without a runtime: no allocation, no threads, no messages."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tilewright import te, tir
from tilewright.driver.build_module import lower
from tilewright.ir.tensor_type import TensorType
from tilewright.relay.backend.aot.kernels import plain_kernels, take_scratch
from tilewright.relay.backend.graph import Entry, GraphNode
from tilewright.support.errors import LoweringError, ModelError
from tilewright.target import Target
from tilewright.tir.interpreter import interpret

C = Target("c")


def nodes_of(body: Any, kind: type) -> list[Any]:
    found: list[Any] = []
    tir.stmt_functor.post_order_visit(
        body, lambda node: found.append(node) if isinstance(node, kind) else None
    )
    return found


def test_large_buffers_come_from_the_scratch_memory(model: Any) -> None:
    """Buffers over a kibibyte are places in one more parameter; the function computes what it did."""
    kernel = plain_kernels(model.kernels, C)["softmax"]
    assert kernel.scratch == 2048
    assert len(kernel.function.params) == 3
    assert all(node.constant_size() * 4 <= 1024 for node in nodes_of(kernel.function.body, tir.Allocate))
    out, scratch = np.zeros(512, "float32"), np.zeros(kernel.scratch, "uint8")
    interpret(kernel.function, model.value.reshape(-1), out, scratch)
    dense = np.exp(model.value - model.value.max(1, keepdims=True))
    np.testing.assert_allclose(out.reshape(8, 64), dense / dense.sum(1, keepdims=True), rtol=1e-5)


def test_nested_buffers_are_apart_and_later_ones_reuse() -> None:
    """A buffer inside the life of another lies beside it; one after it lies over it."""
    a = tir.decl_buffer((1024,), "int8", name="a")
    outer, inner, after = (
        tir.decl_buffer((2000,), "int8", name=name) for name in ("outer", "inner", "after")
    )

    def within(buffer: Any, body: Any) -> Any:
        store = tir.Store(buffer.data, tir.const(1, "int8"), 0)
        parts = tir.SeqStmt([store, body]) if body is not None else store
        return tir.Allocate(buffer.data, "int8", [2000], tir.const(True, "bool"), parts)

    body = tir.SeqStmt([within(outer, within(inner, None)), within(after, None)])
    made, size = take_scratch(tir.PrimFunc([a], body), "f")
    assert size == 4096
    lets = {let.var.name: let.value.args[0].index.value for let in nodes_of(made.body, tir.LetStmt)}
    assert lets == {"outer": 0, "inner": 2048, "after": 0}
    n = tir.Var("n")
    unknown = tir.Allocate(inner.data, "int8", [n], tir.const(True, "bool"), tir.Evaluate(0))
    with pytest.raises(LoweringError, match="f allocates inner, whose size is not constant"):
        take_scratch(tir.PrimFunc([a], tir.LetStmt(n, tir.Load("int32", a.data, 0), unknown)), "f")


def test_loops_are_serial(model: Any) -> None:
    """No parallel loop is left."""
    kernel = plain_kernels(model.kernels, C)["dense"]
    assert {loop.kind for loop in nodes_of(kernel.function.body, tir.For)} == {tir.ForKind.SERIAL}


def test_assertions_return_a_number() -> None:
    """Where an assertion fails, the function returns -1."""
    a = tir.decl_buffer((4,), "int32", name="a")
    store = tir.Store(a.data, tir.const(7, "int32"), 1)
    body = tir.AssertStmt(tir.Load("int32", a.data, 0) > 0, tir.StringImm("ValueError: no"), store)
    kernel = plain_kernels(tir.PrimFunc([a], body, attrs={"global_symbol": "f"}), C)["f"]
    assert not nodes_of(kernel.function.body, tir.AssertStmt)
    for first, status, second in ((1, 0, 7), (0, -1, 0)):
        values = np.array([first, 0, 0, 0], "int32")
        assert interpret(kernel.function, values) == status
        assert values[1] == second


def test_calls_are_compared_with_the_kernel(model: Any) -> None:
    """A call with other shapes, types or numbers of tensors is an error; flattened data must have the size alone."""
    kernel = plain_kernels(model.kernels, C)["add"]
    vector, matrix = (TensorType(shape, "float32") for shape in ((512,), (8, 64)))
    node = GraphNode("n", [vector], [Entry(0), Entry(1)], "add")
    kernel.check_call(node, [vector] * 3)
    kernel.check_call(replace(node, is_flat=True), [matrix] * 3)
    with pytest.raises(
        ModelError, match=r"float32 of shape \[8, 64\] as argument 0; the kernel takes .*\[512\]"
    ):
        kernel.check_call(node, [matrix] * 3)
    with pytest.raises(ModelError, match="with 2 tensors; the kernel takes 3"):
        kernel.check_call(node, [vector] * 2)
    with pytest.raises(ModelError, match="int32 of shape"):
        kernel.check_call(node, [vector, vector, TensorType((512,), "int32")])


def test_errors(model: Any) -> None:
    """Kernels with numbers as parameters, unnamed, doubled, or of unknown size are refused."""
    with pytest.raises(LoweringError, match="two kernels called dense"):
        plain_kernels([model.kernels[0], model.kernels[0]], C)
    a, n = tir.decl_buffer((4,), "int32", name="a"), tir.Var("n")
    store = tir.Store(a.data, n, 0)
    with pytest.raises(LoweringError, match="parameters that are not tensors"):
        plain_kernels(tir.PrimFunc([a, n], store, attrs={"global_symbol": "f"}), C)
    with pytest.raises(LoweringError, match="needs the attribute global_symbol"):
        plain_kernels(tir.PrimFunc([a], store), C)
    x = te.placeholder((te.var("m"),), name="x")
    y = te.compute(x.shape, lambda i: x[i] + 1.0, name="y")
    symbolic = lower(te.create_schedule(y.op), [x, y], name="f")
    with pytest.raises((LoweringError, ModelError)):
        plain_kernels(symbolic, C)["f"].check_call(
            GraphNode("n", [], [Entry(0)], "f"), [TensorType((4,), "float32")] * 2
        )
    far = tir.decl_buffer((4,), "int32", name="far", data_alignment=256)
    aligned = plain_kernels(tir.PrimFunc([far], tir.Store(far.data, 1, 0), attrs={"global_symbol": "f"}), C)[
        "f"
    ]
    with pytest.raises(ModelError, match="far must be aligned to 256 bytes"):
        aligned.check_call(GraphNode("n", [], [], "f"), [TensorType((4,), "int32")])
