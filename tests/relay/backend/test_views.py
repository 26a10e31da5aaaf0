"""Graphs in which concatenations and parts are no kernels: what they compute, on every executor that has a plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.relay.backend.test_memory_plan import check_contents, planned

import tilewright as tvm
from tilewright import relay
from tilewright.relay.infer import infer_module
from tilewright.runtime.container import ADT

X = relay.var("x", shape=(1, 4, 5, 5))


def shuffle_like() -> Any:
    """Halves: one goes on as it is, and is joined to what is made of the other; the halves are results, too."""
    low, high = relay.split(relay.nn.softmax(X), 2, axis=1)
    return relay.Tuple([relay.concatenate([low, relay.nn.softmax(high)], axis=1), low, high])


def growing() -> Any:
    """Each layer reads the concatenation of all before."""
    value: Any = relay.nn.softmax(X)
    for _ in range(3):
        layer = relay.max(relay.nn.softmax(value, axis=1), axis=1, keepdims=True)
        value = relay.concatenate([value, layer], axis=1)
    return relay.nn.relu(value)


def mixed() -> Any:
    """An input, a constant, an operand that stands twice, and a concatenation inside of another, all results."""
    first, second = relay.nn.softmax(X), relay.nn.softmax(X, axis=1)
    inner = relay.concatenate([first, second], axis=1)
    constant = relay.const(np.full((1, 1, 5, 5), 2, "float32"))
    return relay.Tuple([relay.concatenate([inner, X, constant, first], axis=1), inner, second])


def parts_of_an_input() -> Any:
    """Parts of an input are read where the caller's values are."""
    rows = relay.split(X, 4, axis=1)
    return relay.stack([relay.nn.softmax(rows[3]), relay.nn.softmax(rows[1])], axis=0)


MODELS: dict[str, Callable[[], Any]] = {
    "shuffle": shuffle_like,
    "growing": growing,
    "mixed": mixed,
    "parts": parts_of_an_input,
}


def values_of(function: relay.Function) -> list[Any]:
    """Numbers for the parameters."""
    generator = np.random.default_rng(0)
    shapes = [one.checked_type.concrete_shape for one in function.params]
    return [(generator.standard_normal(shape) * 0.3).astype("float32") for shape in shapes]


def as_list(results: Any) -> list[Any]:
    """The results as arrays of NumPy."""
    return [one.numpy() for one in (results if isinstance(results, (list, ADT)) else [results])]


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("name", MODELS)
def test_values(name: str, level: int) -> None:
    """The graph executor, run twice, and the model compiled ahead of time agree with the interpreter; so do inputs that
    are used in place."""
    body = MODELS[name]()
    module = infer_module(tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body)))
    function = module["main"]
    values = values_of(function)
    expected = as_list(relay.create_executor("debug").evaluate(function)(*values))
    names = [one.name_hint for one in function.params]
    with tvm.transform.PassContext(opt_level=level):
        factory = relay.build(module, "llvm")
        ahead = relay.build(module, "llvm -interface-api=packed", executor="aot").get_lib()
    assert '"__nop"' in factory.get_graph_json() and "tensor_offset" in factory.get_graph_json()
    executor = tvm.contrib.graph_executor.GraphModule(factory["default"](tvm.cpu(0)))
    executor.set_input(**dict(zip(names, values, strict=True)))
    for run in range(3):
        if run == 2:
            executor.set_input("x", np.zeros_like(values[names.index("x")]))
            kept = tvm.nd.array(values[names.index("x")])
            executor.set_input_zero_copy("x", kept)
        executor.run()
        for position, one in enumerate(expected):
            np.testing.assert_allclose(executor.get_output(position).numpy(), one, rtol=1e-4, atol=1e-5)
    outputs = [tvm.nd.empty(one.shape) for one in expected]
    memory = [tvm.nd.empty((ahead.memory.workspace,), "uint8")] if ahead.memory.workspace else []
    order = [names.index(argument.name) for argument in ahead.inputs]
    ahead.lib["default"](*(tvm.nd.array(values[position]) for position in order), *outputs, *memory)
    for made, one in zip(outputs, expected, strict=True):
        np.testing.assert_allclose(made.numpy(), one, rtol=1e-4, atol=1e-5)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_random_graphs(data: st.DataObject) -> None:
    """Whatever is joined and taken apart in whatever order, every kernel finds what it is to read."""
    values: list[Any] = [relay.var("x", shape=(1, 4, 4)), relay.var("y", shape=(1, 2, 4))]
    rows = [4, 2]
    for _ in range(data.draw(st.integers(2, 14))):
        position = data.draw(st.integers(0, len(values) - 1))
        value, count = values[position], rows[position]
        kind = data.draw(st.sampled_from(["kernel", "in place", "join", "join", "slice", "split", "reshape"]))
        if kind == "kernel":
            made = [relay.nn.softmax(value)]
        elif kind == "in place":
            made = [relay.exp(value)]
        elif kind == "join":
            others = data.draw(st.lists(st.integers(0, len(values) - 1), min_size=1, max_size=3))
            made = [relay.concatenate([value, *(values[other] for other in others)], axis=1)]
            count += sum(rows[other] for other in others)
        elif kind == "slice":
            begin = data.draw(st.integers(0, count - 1))
            end = data.draw(st.integers(begin + 1, count))
            made = [relay.strided_slice(value, [0, begin, 0], [1, end, 4])]
            count = end - begin
        elif kind == "split":
            place = data.draw(st.integers(1, count)) if count > 1 else 1
            made = list(relay.split(value, [place], axis=1)) if place < count else [relay.exp(value)]
            rows += [place] if place < count else []
            count = count - place if place < count else count
        else:
            made = [relay.reshape(relay.reshape(value, (count, 4)), (1, count, 4))]
        values += made
        rows.append(count)
        if count > 64:
            break
    results = data.draw(st.lists(st.sampled_from(values[2:]), min_size=1, max_size=3))
    for level in (0, 2):
        graph, memory = planned(relay.Tuple([*results, values[-1]]), level)
        check_contents(graph, memory)
        assert memory.largest_live_set <= memory.arena_bytes
