"""Allocations of fragments get the shapes and layouts that the calls use."""

import pytest

from tilewright import tir
from tilewright.support.errors import LoweringError
from tilewright.tir.transform.infer_fragment import InferFragment


def fragment(name, scope):
    return tir.Var(name, tir.decl_buffer((1,), "float16", name=name, scope=scope).data.type_annotation)


def call(name, *arguments):
    return tir.Evaluate(tir.call_intrin("handle", f"tir.{name}", *arguments))


def test_shapes_and_layouts(apply, nodes_of):
    """Matrices have both, accumulators a shape alone."""
    a, c = fragment("a", "wmma.matrix_a"), fragment("c", "wmma.accumulator")
    source = tir.Var("source", "handle")
    body = tir.SeqStmt(
        [
            call("tvm_fill_fragment", c, 16, 16, 16, 0, tir.const(0.0, "float32")),
            call("tvm_load_matrix_sync", a, 16, 16, 16, 0, source, 64, "col_major"),
        ]
    )
    for variable in (a, c):
        body = tir.Allocate(variable, "float16", [256], True, body)
    after = apply(tir.PrimFunc([source], body), InferFragment())
    found = {(node.node.name, node.attr_key): node.value.value for node in nodes_of(after.body, tir.AttrStmt)}
    assert found == {
        ("a", "fragment_shape"): "16, 16, 16",
        ("a", "fragment_layout"): "col_major",
        ("c", "fragment_shape"): "16, 16, 16",
    }


def test_calls_that_disagree(apply):
    """One fragment has one shape."""
    c = fragment("c", "wmma.accumulator")
    zero = tir.const(0.0, "float32")
    body = tir.SeqStmt(
        [call("tvm_fill_fragment", c, 16, 16, 16, 0, zero), call("tvm_fill_fragment", c, 8, 32, 16, 0, zero)]
    )
    with pytest.raises(LoweringError, match="fragment c is used as 16, 16, 16"):
        apply(tir.PrimFunc([], tir.Allocate(c, "float16", [256], True, body)), InferFragment())


def test_other_programs_stay(apply):
    """Without fragments nothing changes."""
    function = tir.PrimFunc([], tir.Evaluate(0))
    assert apply(function, InferFragment()) is function
