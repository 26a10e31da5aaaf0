"""The functions around the kernels."""

import json
from typing import Any

from tilewright import tir
from tilewright.relay.backend.aot import compile_aot
from tilewright.target import Target


def functions_of(model: Any, **options: Any) -> Any:
    return compile_aot(model.graph, {"w": model.weight}, model.kernels, "c", "net", **options).functions


def called(function: tir.PrimFunc) -> list[str]:
    """The C functions that it calls, in order."""
    names: list[str] = []

    def visit(node: Any) -> None:
        if isinstance(node, tir.Call) and node.op.name == "tir.call_extern":
            names.append(node.args[0].value)

    tir.stmt_functor.post_order_visit(function.body, visit)
    return names


def test_the_body_calls_in_order(model: Any) -> None:
    """Kernels run in the graph's order, views cost nothing, and outputs that no kernel writes are copied last."""
    body = functions_of(model).body()
    kernels = [f"tilewright_net_{name}" for name in ("dense", "softmax", "halves", "add")]
    assert called(body) == [*kernels, "memcpy", "memcpy"]
    assert [param.name for param in body.params][-2:] == ["constants", "workspace"]


def test_parameters_of_the_entries(model: Any) -> None:
    """The caller's constants are a parameter; those inside the artefact are not."""
    inside, outside = functions_of(model), functions_of(model, embed_constants=False)
    assert [param.name for param in inside.c_entry().params] == ["inputs", "outputs", "workspace"]
    assert [param.name for param in outside.c_entry().params] == [
        "inputs",
        "outputs",
        "constants",
        "workspace",
    ]
    assert "tilewright_net_constants" in called(inside.c_entry())
    assert "tilewright_net_constants" not in called(outside.c_entry())
    assert called(inside.packed_entry(Target("c"))) == ["tilewright_net_constants", "tilewright_net_body"]


def test_alignment_is_what_kernels_ask_for() -> None:
    """A kernel whose buffer must be aligned makes the model's input so; others are aligned to their elements."""
    a = tir.decl_buffer((16,), "float32", name="a", data_alignment=32)
    b = tir.decl_buffer((16,), "float32", name="b")
    kernel = tir.PrimFunc(
        [a, b], tir.Store(b.data, tir.Load("float32", a.data, 0), 0), attrs={"global_symbol": "f"}
    )
    nodes = [
        {"op": "null", "name": "x"},
        {"op": "tvm_op", "name": "y", "attrs": {"func_name": "f"}, "inputs": [[0, 0, 0]]},
    ]
    attributes = {"shape": ["", [[16], [16]]], "dltype": ["", ["float32", "float32"]]}
    graph = json.dumps({"nodes": nodes, "arg_nodes": [0], "heads": [[1, 0, 0]], "attrs": attributes})
    functions = compile_aot(graph, None, kernel, "c").functions
    assert [argument.alignment for argument in (*functions.inputs, *functions.outputs)] == [32, 4]
