"""The graph executor from Python: a model of two operators, its inputs, parameters and outputs."""

import gc
import json
import threading
import weakref
from typing import Any

import numpy as np
import pytest

from tilewright.contrib import graph_executor
from tilewright.runtime import Module, PackedFunc, convert_to_tvm_func, cpu, metal, save_param_dict
from tilewright.runtime import ndarray as nd
from tilewright.runtime.graph_executor import GraphExecutor


def make_graph(**changes: Any) -> str:
    """y = x @ w + 1 for x of shape (2, 3) and w of shape (3, 4)."""
    graph: dict[str, Any] = {
        "nodes": [
            {"op": "null", "name": "x", "inputs": []},
            {"op": "null", "name": "w", "inputs": []},
            {
                "op": "tvm_op",
                "name": "product",
                "attrs": {"func_name": "multiply", "num_outputs": "1"},
                "inputs": [[0, 0, 0], [1, 0, 0]],
            },
            {
                "op": "tvm_op",
                "name": "shifted",
                "attrs": {"func_name": "shift", "num_outputs": "1"},
                "inputs": [[2, 0, 0]],
            },
        ],
        "arg_nodes": [0, 1],
        "heads": [[3, 0, 0]],
        "node_row_ptr": [0, 1, 2, 3, 4],
        "attrs": {
            "shape": ["list_shape", [[2, 3], [3, 4], [2, 4], [2, 4]]],
            "dltype": ["list_str", ["float32"] * 4],
            "storage_id": ["list_int", [0, 1, 2, 3]],
        },
    }
    return json.dumps({**graph, **changes})


class Operators(Module):
    """The graph's functions, in Python."""

    def __init__(self) -> None:
        super().__init__("operators", ("multiply", "shift"))
        self.fails = False

    def _multiply(self, x: Any, w: Any, out: Any) -> None:
        if self.fails:
            raise KeyError("inside an operator")
        np.from_dlpack(out)[:] = np.from_dlpack(x) @ np.from_dlpack(w)

    def _shift(self, x: Any, out: Any) -> None:
        np.from_dlpack(out)[:] = np.from_dlpack(x) + 1

    def _find(self, name: str) -> PackedFunc | None:
        found = {"multiply": self._multiply, "shift": self._shift}.get(name)
        return convert_to_tvm_func(found) if found is not None else None


X = np.arange(6, dtype="float32").reshape(2, 3)
W = np.arange(12, dtype="float32").reshape(3, 4)


@pytest.fixture
def model() -> graph_executor.GraphModule:
    """The model, without parameters."""
    return graph_executor.create(make_graph(), Operators(), cpu(0))


def test_runs(model: graph_executor.GraphModule) -> None:
    """Inputs by name, by position and as keywords of run; the output is the model's."""
    model.set_input("x", X)
    model.set_input(1, nd.array(W))
    model.run()
    np.testing.assert_array_equal(model.get_output(0).numpy(), X @ W + 1)
    model.run(x=nd.array(X * 2))
    np.testing.assert_array_equal(model.get_output(0).numpy(), 2 * X @ W + 1)
    out = nd.empty((2, 4))
    assert model.get_output(0, out) is out
    np.testing.assert_array_equal(out.numpy(), 2 * X @ W + 1)
    assert (model.get_num_inputs(), model.get_num_outputs(), model.get_input_index("w")) == (2, 1, 1)
    np.testing.assert_array_equal(model.get_input("w").numpy(), W)


def test_parameters(model: graph_executor.GraphModule) -> None:
    """Saved parameters go to the inputs of their names; another executor may share them."""
    params = save_param_dict({"w": W, "unused": np.zeros(3)})
    model.load_params(params)
    model.run(x=nd.array(X))
    np.testing.assert_array_equal(model.get_output(0).numpy(), X @ W + 1)
    other = graph_executor.create(make_graph(), Operators(), cpu(0))
    other.share_params(model, params)
    assert other.get_input("w")._dltensor.data == model.get_input("w")._dltensor.data
    del model
    gc.collect()
    other.run(x=nd.array(X))
    np.testing.assert_array_equal(other.get_output(0).numpy(), X @ W + 1)
    with pytest.raises(ValueError, match="parameters are damaged"):
        other.load_params(params[:-1])


def test_input_in_place(model: graph_executor.GraphModule) -> None:
    """An input set without a copy is read from the caller's memory at each run."""
    model.set_input(w=nd.array(W))
    mine = nd.array(X)
    model.set_input_zero_copy("x", mine)
    model.run()
    np.testing.assert_array_equal(model.get_output(0).numpy(), X @ W + 1)
    mine[:] = 0
    model.run()
    np.testing.assert_array_equal(model.get_output(0).numpy(), np.ones((2, 4)))


def test_module_functions(model: graph_executor.GraphModule) -> None:
    """A program that holds the executor as a module calls the same operations as packed functions."""
    module = model.module
    module["set_input"]("x", nd.array(X))
    module["set_input"]("w", nd.array(W))
    module["run"]()
    convert_to_tvm_func(lambda run: run())(
        module["run"]
    )  # as an argument, through C, it is the same function
    np.testing.assert_array_equal(module["get_output"](0).numpy(), X @ W + 1)
    assert module["get_num_outputs"]() == 1 and model["get_input_index"]("x") == 0
    with pytest.raises(AttributeError, match="no function 'explode'"):
        module["explode"]


def test_any_node(model: graph_executor.GraphModule) -> None:
    """The output of any node can be had, by name or position."""
    model.set_input(x=nd.array(X), w=nd.array(W))
    np.testing.assert_array_equal(model.debug_get_output("product").numpy(), X @ W)
    out = nd.empty((2, 4))
    model.debug_get_output(3, out)
    np.testing.assert_array_equal(out.numpy(), X @ W + 1)
    with pytest.raises(ValueError, match="no node 'absent'"):
        model.debug_get_output("absent")
    assert model.module.node_names() == ["x", "w", "product", "shifted"]
    assert model.module.time_node(2, number=2, repeat=3).max > 0


def test_outputs_keep_the_graph(model: graph_executor.GraphModule) -> None:
    """An output stays readable after the executor is gone."""
    model.run(x=nd.array(X), w=nd.array(W))
    output = model.get_output(0)
    del model
    gc.collect()
    np.testing.assert_array_equal(output.numpy(), X @ W + 1)


def test_benchmark(model: graph_executor.GraphModule) -> None:
    """A run is measured, with the copies in and out if asked."""
    assert len(model.benchmark(cpu(0), repeat=3, number=2).results) == 3
    pauses = {"cooldown_interval_ms": 1, "repeats_to_cooldown": 2, "limit_zero_time_iterations": 10}
    assert len(model.benchmark(cpu(0), repeat=3, number=2, **pauses).results) == 3
    assert model.benchmark(cpu(0), repeat=2, number=1, end_to_end=True, x=nd.array(X)).mean > 0


def test_numbers_become_the_type_of_the_input(model: graph_executor.GraphModule) -> None:
    """What NumPy makes by default, and lists, are taken; the digits that float32 lacks are rounded away."""
    for value in (np.full((2, 3), 0.1), [[1, 2, 3], [4, 5, 6]], np.ones((2, 3), "uint8")):
        model.set_input("x", value)
        found = model.get_input("x").numpy()
        assert found.dtype == "float32"
        np.testing.assert_array_equal(found, np.asarray(value).astype("float32"))
    model.set_input(x=[[1.5] * 3] * 2)
    assert model.get_input("x").numpy().tolist() == [[1.5] * 3] * 2


def test_misspelt_inputs_are_noticed() -> None:
    """A name that is not an input is an error where an input has no value; else it may be a folded parameter."""
    model = graph_executor.create(make_graph(), Operators(), cpu(0))
    model.set_input("w", W)
    with pytest.raises(ValueError, match="no input 'X', and x has no value; its inputs are x, w"):
        model.run(X=X)
    model.run(x=X)
    model.run(folded=X)
    model.set_input(gone=X)
    model.run()


def test_errors(model: graph_executor.GraphModule) -> None:
    """Wrong inputs, names and devices are errors that say what is expected; an operator's exception is the caller's."""
    with pytest.raises(ValueError, match="extent 3 in dimension 0; 2 is expected"):
        model.set_input("x", np.zeros((3, 3), "float32"))
    with pytest.raises(TypeError, match="input x is float64; float32 is expected"):
        model.set_input("x", nd.array(np.zeros((2, 3))))
    with pytest.raises(TypeError, match="input x is int64; float32 is expected"):
        model.set_input("x", np.full((2, 3), 2**24 + 1))
    with pytest.raises(TypeError, match="complex|type"):
        model.set_input("x", np.zeros((2, 3), "complex64"))
    with pytest.raises(ValueError, match="no input 'z'; it has x, w"):
        model.set_input("z", X)
    with pytest.raises(IndexError, match="there is no output 1"):
        model.get_output(1)
    with pytest.raises(RuntimeError, match=r"metal\(0\) cannot be used: this runtime has no driver"):
        GraphExecutor(make_graph(), Operators(), metal(0))
    with pytest.raises(ValueError, match="needs a Device"):
        graph_executor.create(make_graph(), Operators(), [])
    with pytest.raises(ValueError, match="the graph is a text"):
        graph_executor.create(3, Operators(), cpu(0))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="needs a graph executor"):
        graph_executor.GraphModule(Operators())
    failing = Operators()
    failing.fails = True
    with pytest.raises(KeyError, match="inside an operator"):
        graph_executor.create(make_graph(), failing, cpu(0)).run()


def test_missing_function() -> None:
    """A graph that calls a function the library does not have names node and function."""
    nodes = json.loads(make_graph())["nodes"]
    nodes[3]["attrs"]["func_name"] = "absent"
    with pytest.raises(ValueError, match="node shifted calls absent"):
        GraphExecutor(make_graph(nodes=nodes), Operators())
    with pytest.raises(ValueError, match="not JSON"):
        GraphExecutor("{", Operators())


def test_memory_is_planned() -> None:
    """Tensors with one storage share memory in one arena."""
    assert GraphExecutor(make_graph(), Operators()).arena_bytes == 128
    graph = json.loads(make_graph())
    graph["attrs"]["storage_id"][1][3] = 2
    shared = GraphExecutor(json.dumps(graph), Operators())
    assert shared.arena_bytes == 64


def joined_graph(**attributes: Any) -> str:
    """x + 1 and x + 2 one after the other, and the second half of that."""

    def call(name: str, function: str, inputs: list[int]) -> dict[str, Any]:
        attrs = {"func_name": function, "num_outputs": "1"}
        return {"op": "tvm_op", "name": name, "attrs": attrs, "inputs": [[one, 0, 0] for one in inputs]}

    graph = {
        "nodes": [
            {"op": "null", "name": "x", "inputs": []},
            call("one", "shift", [0]),
            call("two", "shift", [1]),
            call("both", "__nop", [1, 2]),
            call("half", "__nop", [3]),
        ],
        "arg_nodes": [0],
        "heads": [[3, 0, 0], [4, 0, 0]],
        "node_row_ptr": [0, 1, 2, 3, 4, 5],
        "attrs": {
            "shape": ["list_shape", [[2, 3], [2, 3], [2, 3], [4, 3], [6]]],
            "dltype": ["list_str", ["float32"] * 5],
            "storage_id": ["list_int", [0, 1, 1, 1, 1]],
            "tensor_offset": ["list_int", [0, 0, 24, 0, 24]],
            **{name: ["list_int", values] for name, values in attributes.items()},
        },
    }
    return json.dumps(graph)


def test_tensors_in_parts_of_a_storage() -> None:
    """What is joined is written where the result lies, and a part is read there; an input can be in place meanwhile."""
    executor = GraphExecutor(joined_graph(), Operators())
    assert executor.arena_bytes == 64
    model = graph_executor.create(joined_graph(), Operators(), cpu(0))
    model.set_input("x", X)
    model.run()
    np.testing.assert_array_equal(model.get_output(0).numpy(), np.concatenate([X + 1, X + 2]))
    np.testing.assert_array_equal(model.get_output(1).numpy(), (X + 2).ravel())


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"tensor_offset": [0, 0, 24, 0]}, "does not have an offset for each tensor"),
        ({"tensor_offset": [0, 0, 26, 0, 24]}, "a tensor has an impossible offset"),
        ({"tensor_offset": [0, 0, -24, 0, 24]}, "a tensor has an impossible offset"),
        ({"tensor_offset": [0, 0, (1 << 63) - 4, 0, 24]}, "a tensor has an impossible offset"),
        ({"tensor_offset": [4, 0, 24, 0, 24]}, "an input does not lie at the beginning of its storage"),
        ({"tensor_offset": [0, 0, 28, 0, 24]}, "does not lie where it is joined to others"),
        ({"tensor_offset": [0, 0, 24, 0, 28]}, "a part of a tensor is not inside of it"),
        ({"storage_id": [0, 1, 2, 1, 1]}, "does not lie where it is joined to others"),
        ({"storage_id": [0, 1, 1, 1, 2]}, "does not have the tensor's memory"),
    ],
)
def test_places_that_cannot_be(attributes: dict[str, list[int]], message: str) -> None:
    """A graph whose tensors are not where its nodes that run nothing say is refused."""
    with pytest.raises(ValueError, match=message):
        GraphExecutor(joined_graph(**attributes), Operators())


def test_an_input_in_place_must_have_all_the_memory() -> None:
    """A graph that writes, or reads more than the input has, in its memory cannot use the caller's."""
    larger = json.loads(joined_graph(storage_id=[1, 0, 0, 0, 0]))
    larger["nodes"][4]["inputs"] = [[0, 0, 0]]
    with pytest.raises(ValueError, match="does not have the tensor's memory"):
        GraphExecutor(json.dumps(larger), Operators())
    shared = GraphExecutor(joined_graph(storage_id=[1, 1, 1, 1, 1]), Operators())
    with pytest.raises(ValueError, match="the graph writes over its memory"):
        graph_executor.GraphModule(shared).set_input_zero_copy("x", nd.array(X))


def test_runs_are_timed_node_by_node() -> None:
    """Every run has a begin and a duration for every node, in order; nodes without a function take no time."""
    executor = GraphExecutor(make_graph(), Operators())
    runs = executor.run_timed(3)
    assert len(runs) == 3
    names = executor.node_names()
    for begins, seconds in runs:
        assert len(begins) == len(seconds) == len(names)
        assert begins == sorted(begins) and begins[0] >= 0
        assert seconds[names.index("shifted")] > 0 and seconds[0] == 0
    with pytest.raises(ValueError, match="at least 1"):
        executor.run_timed(0)
    failing = Operators()
    failing.fails = True
    with pytest.raises(KeyError, match="inside an operator"):
        GraphExecutor(make_graph(), failing).run_timed(2)


def test_an_array_used_in_place_is_kept(model: graph_executor.GraphModule) -> None:
    """By the graph while it reads from it, and by a view of the input for longer."""
    values = nd.array(X)
    alive = weakref.ref(values)
    before = model.get_input("x")
    model.set_input_zero_copy("x", values)
    del values
    gc.collect()
    others = [nd.array(np.full(X.shape, 7, "float32")) for _ in range(8)]  # would take freed memory
    model.run()
    assert alive() is None  # the Python object may go, its memory stays
    np.testing.assert_array_equal(model.get_input("x").numpy(), X)
    view = model.get_input("x")
    model.set_input("x", X * 2)
    gc.collect()
    np.testing.assert_array_equal(view.numpy(), X)
    np.testing.assert_array_equal(before.numpy(), X * 2)
    assert len(others) == 8


def test_an_input_over_read_only_memory(model: graph_executor.GraphModule) -> None:
    values = nd.empty(X.shape).copyfrom(X)
    borrowed = np.from_dlpack(values)
    borrowed.flags.writeable = False
    model.set_input_zero_copy("x", nd.from_dlpack(borrowed))
    with pytest.raises(ValueError, match="memory is read-only"):
        model.get_input("x").copyfrom(X)
    model.set_input("x", X)
    model.get_input("x").copyfrom(X)


@pytest.mark.parametrize("index", [2**40, 2**32, -(2**32), 2**31, 17, -1])
def test_positions_that_do_not_exist(model: graph_executor.GraphModule, index: int) -> None:
    """C's numbers have 32 bits: what is more must not become another position."""
    executor = model.module
    for use in (
        lambda: executor.get_output(index),
        lambda: executor.get_input(index),
        lambda: executor.set_input(index, X),
        lambda: executor.set_input_zero_copy(index, nd.array(X)),
        lambda: executor.node_output(index),
        lambda: executor.node_output(2, index),
        lambda: executor.run_until(index),
        lambda: executor.run_node(index),
        lambda: executor.input_device(index),
    ):
        with pytest.raises(IndexError):
            use()


def test_two_threads_in_one_graph_are_refused() -> None:
    """Rather than given each other's numbers; afterwards the graph is free again."""
    entered, go_on = threading.Event(), threading.Event()

    def shift(source: Any, target: Any) -> None:
        entered.set()
        assert go_on.wait(30)
        target.copyfrom(source.numpy() + 1)

    class Slow(Module):
        def _find(self, name: str) -> PackedFunc | None:
            return convert_to_tvm_func(shift if name == "shift" else multiply)

    def multiply(x: Any, w: Any, target: Any) -> None:
        target.copyfrom(x.numpy() @ w.numpy())

    model = GraphExecutor(make_graph(), Slow("test", ("multiply", "shift")), cpu())
    model.set_input("x", X)
    first = threading.Thread(target=model.run)
    first.start()
    assert entered.wait(30)
    for use in (model.run, lambda: model.set_input("x", X), lambda: model.run_timed(1)):
        with pytest.raises(RuntimeError, match=r"graph is in use: another thread.*library.session\(\)"):
            use()
    go_on.set()
    first.join()
    model.set_input("x", X)
    model.run()
