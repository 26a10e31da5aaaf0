"""Outputs in the memory of inputs: caches that are appended to, and why an output cannot be there."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.contrib import graph_executor
from tilewright.relay.backend.in_place import in_place_parameters
from tilewright.relay.infer import infer_function
from tilewright.runtime.vm import VirtualMachine
from tilewright.support.errors import LoweringError, TargetError

HEADS, CAPACITY, SIZE = 4, 32, 8
RANDOM = np.random.default_rng(5)


def named(inputs: list[Any], *outputs: tuple[str, Any]) -> tvm.IRModule:
    """A module with named outputs."""
    names = {"output_tensor_names": [name for name, _ in outputs]}
    body = relay.Tuple([value for _, value in outputs])
    return tvm.IRModule.from_expr(relay.Function(inputs, body, attrs=names))


def appending(capacity: Any = CAPACITY) -> tvm.IRModule:
    """A cache with one row more, and the sums of its rows: one member of a batch writes at a place of its own."""
    past = relay.var("past", shape=(1, HEADS, capacity, SIZE))
    new = relay.var("new", shape=(1, HEADS, 1, SIZE))
    position = relay.var("position", shape=(1,), dtype="int64")
    indices = relay.broadcast_to(relay.reshape(position, (1, 1, 1, 1)), (1, HEADS, 1, SIZE))
    present = relay.scatter(past, indices, new, 2)
    return named([past, new, position], ("total", relay.sum(present * present, axis=2)), ("present", present))


def graph(module: tvm.IRModule, in_place: dict[str, str]) -> Any:
    """The compiled module in the graph executor."""
    built = relay.build(module, "llvm", in_place=in_place)
    return graph_executor.GraphModule(built["default"](tvm.cpu())), json.loads(built.get_graph_json())


def test_a_cache_is_appended_in_place() -> None:
    """The output has the input's memory, and the next run goes on where the last one ended."""
    executor, text = graph(appending(), {"past": "present"})
    storages = text["attrs"]["storage_id"][1]
    first, second = (text["node_row_ptr"][node] + place for node, place, _ in text["heads"])
    names = [node["name"] for node in text["nodes"]]
    assert storages[second] == storages[text["node_row_ptr"][names.index("past")]]
    assert storages[first] != storages[second]
    expected = RANDOM.standard_normal((1, HEADS, CAPACITY, SIZE)).astype("float32")
    executor.set_input("past", expected)
    for position in (3, 4, 31, -1, 0):
        new = RANDOM.standard_normal((1, HEADS, 1, SIZE)).astype("float32")
        executor.set_input("new", new)
        executor.set_input("position", np.array([position]))
        executor.run()
        expected[:, :, position] = new[:, :, 0]
        np.testing.assert_array_equal(executor.get_output(1).numpy(), expected)
        np.testing.assert_allclose(executor.get_output(0).numpy(), (expected**2).sum(2), rtol=1e-5)
    assert executor.module.updates_input("past") and not executor.module.updates_input("new")
    np.testing.assert_array_equal(executor.get_input("past").numpy(), expected)


@pytest.mark.unguarded  # what ends at a guard page is aligned as its elements are
def test_the_memory_may_be_the_callers() -> None:
    """A cache that is set without a copy is written where the caller has it; read-only memory is refused."""
    executor, _ = graph(appending(), {"past": "present"})
    cache = tvm.nd.array(np.zeros((1, HEADS, CAPACITY, SIZE), "float32"))
    executor.set_input_zero_copy("past", cache)
    executor.run(new=np.full((1, HEADS, 1, SIZE), 2.0), position=np.array([7]))
    expected = np.zeros((1, HEADS, CAPACITY, SIZE), "float32")
    expected[:, :, 7] = 2
    np.testing.assert_array_equal(cache.numpy(), expected)
    expected.setflags(write=False)
    with pytest.raises(ValueError, match="writes to the input 'past'.*read-only"):
        executor.set_input_zero_copy("past", tvm.nd.from_dlpack(expected))


def test_without_the_option_nothing_is_overwritten() -> None:
    """A cache that is not named stays as it was."""
    executor, text = graph(appending(), {})
    assert "updated_inputs" not in text["attrs"]
    executor.run(
        past=np.ones((1, HEADS, CAPACITY, SIZE)),
        new=np.zeros((1, HEADS, 1, SIZE)),
        position=np.array([7]),
    )
    np.testing.assert_array_equal(executor.get_input("past").numpy(), 1)
    assert executor.get_output(1).numpy().sum() == HEADS * (CAPACITY - 1) * SIZE


def test_several_updates_and_views() -> None:
    """Updates in a row, of a cache in another shape, and a counter: each in its own memory."""
    cache = relay.var("cache", shape=(CAPACITY, 2 * SIZE))
    count = relay.var("count", shape=(1,), dtype="int64")
    row = relay.var("row", shape=(1, SIZE))
    rows = relay.reshape(cache, (2 * CAPACITY, SIZE))
    rows = relay.scatter_nd(rows, relay.reshape(count * relay.const(2, "int64"), (1, 1)), row)
    odd = relay.reshape(count * relay.const(2, "int64") + relay.const(1, "int64"), (1, 1))
    rows = relay.scatter_nd(rows, odd, relay.negative(row), "add")
    module = named(
        [cache, count, row],
        ("cache_out", relay.reshape(rows, (CAPACITY, 2 * SIZE))),
        ("count_out", count + relay.const(1, "int64")),
    )
    executor, _ = graph(module, {"cache": "cache_out", "count": "count_out"})
    expected = RANDOM.standard_normal((CAPACITY, 2 * SIZE)).astype("float32")
    executor.set_input("cache", expected)
    for step in range(3):
        value = RANDOM.standard_normal((1, SIZE)).astype("float32")
        executor.run(row=value)
        expected[step, :SIZE] = value
        expected[step, SIZE:] -= value[0]
        np.testing.assert_array_equal(executor.get_output(0).numpy(), expected)
    assert executor.get_output(1).numpy() == [3]


def test_open_capacity_in_the_virtual_machine() -> None:
    """The program writes into its argument, whatever its size, and hands it back."""
    program = relay.vm.compile(appending(relay.Any()), "llvm", in_place={"past": "present"})
    machine = VirtualMachine(program, tvm.cpu())
    for capacity in (5, 64):
        cache = tvm.nd.array(np.zeros((1, HEADS, capacity, SIZE), "float32"))
        expected = cache.numpy()
        for position in (0, 1, capacity - 1):
            new = RANDOM.standard_normal((1, HEADS, 1, SIZE)).astype("float32")
            total, present = machine.invoke("main", cache, new, np.array([position]))
            expected[:, :, position] = new[:, :, 0]
            np.testing.assert_array_equal(present.numpy(), expected)
            np.testing.assert_allclose(total.numpy(), (expected**2).sum(2), rtol=1e-5)
            assert present.memory_range() == cache.memory_range()
        np.testing.assert_array_equal(cache.numpy(), expected)


def reading_late() -> tvm.IRModule:
    """What the cache held before is needed after it was changed: it is subtracted."""
    past = relay.var("past", shape=(CAPACITY, SIZE))
    new = relay.var("new", shape=(1, SIZE))
    present = relay.scatter_nd(past, relay.const([[3]], "int64"), new)
    return named([past, new], ("change", relay.cumsum(present, axis=0) - past), ("present", present))


def kept() -> tvm.IRModule:
    """What the cache held before is a result."""
    past = relay.var("past", shape=(CAPACITY, SIZE))
    new = relay.var("new", shape=(1, SIZE))
    return named(
        [past, new], ("old", past), ("new", relay.scatter_nd(past, relay.const([[3]], "int64"), new))
    )


def joined() -> tvm.IRModule:
    """A cache that grows."""
    past = relay.var("past", shape=(CAPACITY, SIZE))
    new = relay.var("new", shape=(1, SIZE))
    grown = relay.concatenate([past, new], axis=0)
    last = relay.strided_slice(grown, [1], [CAPACITY + 1], axes=[0])
    return named([past, new], ("grown", grown), ("last", last))


def swapped() -> tvm.IRModule:
    """Two inputs that change places."""
    one, other = (relay.var(name, shape=(SIZE,)) for name in ("one", "other"))
    return named([one, other], ("first", other), ("second", one))


@pytest.mark.parametrize("executor", ["graph", "vm"])
@pytest.mark.parametrize(
    ("module", "in_place", "message"),
    [
        (appending(), {"before": "present"}, "no input before .* it has past, new, position"),
        (appending(), {"past": "after"}, "no output after; it has total, present"),
        (appending(), {"past": "present", "new": "present"}, "present is to be in the memory of two inputs"),
        (appending(), {"past": "total"}, "they are .*1, 4, 8.* and .*1, 4, 32, 8"),
        (reading_late(), {"past": "present"}, "may read it after scatter_nd"),
        (kept(), {"past": "new"}, "what the input held before is a result"),
        (joined(), {"past": "grown"}, "they are .*33, 8.* and .*32, 8"),
        (joined(), {"past": "last"}, "does not change a part of the input"),
        (swapped(), {"one": "first", "other": "second"}, "it is another input"),
    ],
)
def test_refusals(executor: str, module: tvm.IRModule, in_place: dict[str, str], message: str) -> None:
    """An output that cannot be in the memory of an input is an error that says why, never a wrong number."""
    compile_module = relay.vm.compile if executor == "vm" else relay.build
    with pytest.raises(LoweringError, match=message):
        compile_module(module, "llvm", in_place=in_place)


def test_ahead_of_time() -> None:
    """The caller of a model compiled ahead of time has memory for each output."""
    with pytest.raises(TargetError, match="use in_place with the graph executor or the virtual machine"):
        relay.build(appending(), "llvm", executor="aot", in_place={"past": "present"})


def test_what_a_branch_may_read_is_kept() -> None:
    """A branch of the program that is given the cache rules the memory out: nothing shows what it keeps."""
    past = relay.var("past", shape=(CAPACITY, SIZE))
    new = relay.var("new", shape=(1, SIZE))
    flag = relay.var("flag", shape=(), dtype="bool")
    chosen = relay.If(flag, relay.exp(past), past)
    present = relay.scatter_nd(past, relay.const([[3]], "int64"), new)
    module = named([past, new, flag], ("chosen", chosen), ("present", present))
    with pytest.raises(LoweringError, match="may read it after scatter_nd"):
        relay.vm.compile(module, "llvm", in_place={"past": "present"})


def test_kernels_of_other_devices_are_not_relied_upon() -> None:
    """Only kernels for the CPU notice that argument and result are one memory."""
    data = relay.var("data", shape=(4, 2))
    indices, updates = relay.var("i", shape=(1, 1), dtype="int64"), relay.var("u", shape=(1, 2))
    function = infer_function(
        relay.Function([data, indices, updates], relay.scatter_nd(data, indices, updates))
    )
    assert in_place_parameters(function) == [0]
    assert in_place_parameters(function, tvm.cuda().device_type) == []


def test_an_intermediate_tensor_is_updated_in_place() -> None:
    """What nobody reads any more is updated where it is: no kernel copies it."""
    x = relay.var("x", shape=(CAPACITY, SIZE))
    new = relay.var("new", shape=(1, SIZE))
    made = relay.scatter_nd(relay.nn.softmax(x), relay.const([[5]], "int64"), new)
    executor, text = graph(named([x, new], ("made", made)), {})
    names = [node["name"] for node in text["nodes"]]
    storages = {name: text["attrs"]["storage_id"][1][place] for place, name in enumerate(names)}
    (written,) = (storages[name] for name in names if "scatter_nd" in name)
    assert written in [storages[name] for name in names if "softmax" in name]
    values = RANDOM.standard_normal((CAPACITY, SIZE)).astype("float32")
    executor.run(x=values, new=np.ones((1, SIZE)))
    raised = np.exp(values)
    expected = raised / raised.sum(1, keepdims=True)
    expected[5] = 1
    np.testing.assert_allclose(executor.get_output(0).numpy(), expected, rtol=1e-5)
