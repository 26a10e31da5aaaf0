"""The memory of a graph: what shares, what must not, and how close the arena comes to the largest live set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.ir.tensor_type import TensorType
from tilewright.relay import transform
from tilewright.relay.backend.graph import Entry, ExecutorGraph, GraphBuilder
from tilewright.relay.backend.memory_plan import GraphMemory, byte_size, plan_graph_memory
from tilewright.relay.infer import infer_module
from tilewright.support.arena import rounded


def planned(body: Any, level: int = 2) -> tuple[ExecutorGraph, GraphMemory]:
    """The graph of an expression, and its plan."""
    module = infer_module(tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body)))
    fused = infer_module(transform.FuseOps(level)(module))
    graph = GraphBuilder("test").build(fused["main"])
    return graph, plan_graph_memory(graph)


def conv(data: Any, name: str, channels: int, size: int = 3, stride: int = 1) -> Any:
    """A convolution with a weight of its own."""
    return relay.nn.conv2d(
        data,
        relay.var(name),
        strides=(stride, stride),
        padding=(size // 2, size // 2),
        channels=channels,
        kernel_size=(size, size),
    )


def resnet_like() -> Any:
    """Residual blocks of three stages."""
    value: Any = relay.nn.relu(conv(relay.var("x", shape=(1, 3, 32, 32)), "w0", 16))
    for stage, channels in enumerate((16, 32, 64)):
        for block in range(3):
            stride = 2 if stage and block == 0 else 1
            name = f"{stage}_{block}"
            inner = relay.nn.relu(conv(value, f"a{name}", channels, stride=stride))
            inner = conv(inner, f"b{name}", channels)
            side = value if stride == 1 else conv(value, f"s{name}", channels, 1, stride)
            value = relay.nn.relu(inner + side)
    return relay.nn.batch_flatten(relay.nn.global_avg_pool2d(value))


def densenet_like() -> Any:
    """Blocks whose layers take in all layers before."""
    value: Any = conv(relay.var("x", shape=(1, 3, 32, 32)), "w", 24)
    for block in range(3):
        for layer in range(6):
            grown = conv(relay.nn.relu(value), f"b{block}_{layer}", 48, 1)
            grown = conv(relay.nn.relu(grown), f"c{block}_{layer}", 12)
            value = relay.concatenate([value, grown], axis=1)
        value = relay.nn.avg_pool2d(conv(value, f"t{block}", 24, 1), pool_size=(2, 2), strides=(2, 2))
    return relay.nn.global_avg_pool2d(value)


def unet_like() -> Any:
    """Values of the way down are kept for the way up."""
    value: Any = relay.var("x", shape=(1, 3, 64, 64))
    kept = []
    for depth, channels in enumerate((8, 16, 32)):
        value = relay.nn.relu(conv(value, f"d{depth}", channels))
        kept.append(value)
        value = relay.nn.max_pool2d(value, pool_size=(2, 2), strides=(2, 2))
    value = relay.nn.relu(conv(value, "middle", 64))
    for depth, channels in reversed(list(enumerate((8, 16, 32)))):
        value = relay.concatenate([relay.nn.upsampling(value, 2, 2), kept[depth]], axis=1)
        value = relay.nn.relu(conv(value, f"u{depth}", channels))
    return conv(value, "last", 2, 1)


MODELS: dict[str, Callable[[], Any]] = {
    "resnet": resnet_like,
    "densenet": densenet_like,
    "unet": unet_like,
}


def no_overlap(graph: ExecutorGraph, memory: GraphMemory) -> None:
    """While a tensor is still to be read, no kernel writes to its bytes, but one that reads it at the same places."""
    last: dict[Entry, int] = {}
    for step, node in enumerate(graph.nodes):
        for entry in node.inputs:
            last[entry] = step
    for entry in graph.outputs:
        last[entry] = len(graph.nodes)

    def bytes_of(entry: Entry) -> tuple[int, int]:
        start = memory.offsets[memory.storage_of[entry]]
        return start, start + byte_size(graph.type_of(entry))

    for step, node in enumerate(graph.nodes):
        if node.kernel is None or node.is_view:
            continue
        for output in range(len(node.outputs)):
            made = Entry(step, output)
            start, end = bytes_of(made)
            for earlier, use in last.items():
                kernel = graph.nodes[earlier.node].kernel
                shares = memory.storage_of[earlier] == memory.storage_of[made]
                if earlier.node >= step or kernel is None or use < step or (use == step and shares):
                    continue
                other_start, other_end = bytes_of(earlier)
                assert end <= other_start or other_end <= start, (made, earlier)


@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize("name", MODELS)
def test_models(name: str, level: int) -> None:
    """Nothing is overwritten that is still read, and the arena is at most a fifth above what must live at once."""
    graph, memory = planned(MODELS[name](), level)
    no_overlap(graph, memory)
    assert memory.largest_live_set <= memory.arena_bytes <= 1.2 * memory.largest_live_set
    assert memory.arena_bytes < memory.tensors_bytes
    assert f"{memory.arena_bytes:,}" in memory.report()


def test_elementwise_kernels_overwrite_their_argument() -> None:
    """A chain of kernels of one shape lives in one buffer."""
    x = relay.var("x", shape=(1024,))
    body: Any = x
    for _ in range(6):
        body = relay.exp(body)
    graph, memory = planned(body, level=0)
    assert memory.arena_bytes == 4096
    # The input is not overwritten: it is the caller's.
    assert memory.storage_of[Entry(0)] != memory.storage_of[Entry(1)]
    assert len({memory.storage_of[Entry(step)] for step in range(1, len(graph.nodes))}) == 1


def test_what_is_read_again_is_not_overwritten() -> None:
    """The first result is an argument of the last kernel too."""
    x = relay.var("x", shape=(1024,))
    first = relay.exp(x)
    graph, memory = planned(relay.sin(first) + first, level=0)
    no_overlap(graph, memory)
    assert memory.arena_bytes == 2 * 4096


def test_an_argument_of_another_shape_is_not_overwritten() -> None:
    """A kernel that repeats its argument reads it after it has begun to write."""
    x = relay.var("x", shape=(1, 64))
    graph, memory = planned(relay.exp(x) + relay.var("y", shape=(64, 64)), level=0)
    storages = [memory.storage_of[Entry(step)] for step, node in enumerate(graph.nodes) if node.kernel]
    assert len(set(storages)) == 2


def test_a_kernel_that_moves_elements_overwrites_nothing() -> None:
    """A transposition of a square has the same size, and must have memory of its own."""
    x = relay.var("x", shape=(32, 32))
    graph, memory = planned(relay.transpose(relay.exp(x)), level=0)
    no_overlap(graph, memory)
    assert memory.arena_bytes == 2 * 4096


def test_views_share_their_argument() -> None:
    """A reshape is no kernel; what it shares lives as long as either is read."""
    x = relay.var("x", shape=(32, 32))
    first = relay.exp(x)
    graph, memory = planned(relay.Tuple([relay.reshape(first, (1024,)), relay.sin(first)]), level=0)
    views = [step for step, node in enumerate(graph.nodes) if node.is_view]
    assert len(views) == 1
    entry = graph.nodes[views[0]].inputs[0]
    assert memory.storage_of[Entry(views[0])] == memory.storage_of[entry]
    no_overlap(graph, memory)
    assert memory.arena_bytes == 2 * 4096


def test_inputs_and_constants_have_memory_of_their_own() -> None:
    """They are not part of the arena; constants are counted as parameters."""
    body = relay.var("x", shape=(16,)) + relay.const(np.zeros(16, "float32"))
    graph, memory = planned(body)
    assert memory.arena_bytes == rounded(64)
    assert memory.parameter_bytes == 64
    assert memory.storage_of[graph.outputs[0]] not in {
        memory.storage_of[Entry(step)] for step, node in enumerate(graph.nodes) if node.kernel is None
    }


@pytest.mark.parametrize(
    ("shape", "dtype", "expected"),
    [
        ((), "float32", 4),
        ((3, 5), "float64", 120),
        ((0, 4), "int8", 0),
        ((10,), "bool", 10),
        ((9,), "int4", 9),
    ],
)
def test_byte_size(shape: tuple[int, ...], dtype: str, expected: int) -> None:
    """An element takes whole bytes."""
    assert byte_size(TensorType(shape, dtype)) == expected


def test_the_plan_gives_right_results() -> None:
    """A compiled model in the planned memory agrees with the interpreter, run after run."""
    first = relay.nn.relu(conv(relay.var("x", shape=(1, 4, 8, 8)), "a", 8))
    inner = relay.nn.max_pool2d(first, pool_size=(2, 2), strides=(2, 2))
    inner = conv(relay.nn.relu(conv(inner, "b", 8)) + inner, "c", 8, 1)
    body = relay.concatenate([relay.nn.upsampling(inner, 2, 2), relay.exp(first)], axis=1)
    function = infer_module(tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body)))[
        "main"
    ]
    generator = np.random.default_rng(0)
    values = [
        (generator.standard_normal(one.checked_type.concrete_shape) * 0.2).astype("float32")
        for one in function.params
    ]
    expected = relay.create_executor("debug").evaluate(function)(*values).numpy()
    run = relay.create_executor("graph").evaluate(function)
    for _ in range(2):
        np.testing.assert_allclose(run(*values).numpy(), expected, rtol=1e-3, atol=1e-4)
