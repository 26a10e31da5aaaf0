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
from tilewright.relay.backend.graph import Entry, ExecutorGraph, byte_size
from tilewright.relay.backend.memory_plan import GraphMemory, plan_graph_memory
from tilewright.relay.backend.te_compiler import operator_names
from tilewright.relay.backend.views import build_graph
from tilewright.relay.infer import infer_module
from tilewright.support.arena import rounded


def planned(body: Any, level: int = 2) -> tuple[ExecutorGraph, GraphMemory]:
    """The graph of an expression, and its plan."""
    module = infer_module(tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body)))
    fused = infer_module(transform.FuseOps(level, views=True)(module))
    graph = build_graph(fused["main"], "test")
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


def check_contents(graph: ExecutorGraph, memory: GraphMemory) -> None:
    """Run the graph on numbers that say which word of which tensor is meant: whatever a kernel reads, and what the
    graph gives in the end, is in memory then as the nodes that run nothing say. A kernel reads all before it writes,
    which in an elementwise kernel comes to the same."""
    words = np.full(memory.arena_bytes // 4, -1)
    written = 0
    meant: dict[Entry, np.ndarray] = {}

    def words_of(entry: Entry) -> np.ndarray:
        start = memory.offsets[memory.storage_of[entry]] + memory.offset_of[entry]
        return words[start // 4 : (start + byte_size(graph.type_of(entry))) // 4]

    def check(entry: Entry) -> None:
        if memory.storage_of[entry] not in fixed:
            np.testing.assert_array_equal(words_of(entry), meant[entry], err_msg=str(entry))

    fixed = {memory.storage_of[Entry(step)] for step, node in enumerate(graph.nodes) if node.kernel is None}
    for step, node in enumerate(graph.nodes):
        made = [Entry(step, output) for output in range(len(node.outputs))]
        if node.is_view and node.view_offsets is not None:
            source = meant[node.inputs[0]]
            for entry, offset in zip(made, node.view_offsets, strict=True):
                meant[entry] = source[offset // 4 :][: byte_size(graph.type_of(entry)) // 4]
        elif node.is_view:
            meant[made[0]] = np.concatenate([meant[entry] for entry in node.inputs])
        else:
            for entry in node.inputs:
                check(entry)
            for entry in made:
                size = byte_size(graph.type_of(entry)) // 4
                meant[entry] = np.arange(written, written + size)
                written += size
                if node.kernel is not None:
                    words_of(entry)[:] = meant[entry]
    for entry in graph.outputs:
        check(entry)


@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize("name", MODELS)
def test_models(name: str, level: int) -> None:
    """Nothing is overwritten that is still read, and the arena is at most a fifth above what must live at once."""
    graph, memory = planned(MODELS[name](), level)
    check_contents(graph, memory)
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
    check_contents(graph, memory)
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
    check_contents(graph, memory)
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
    check_contents(graph, memory)
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


def kernels(graph: ExecutorGraph) -> list[str]:
    """The operators of the kernels that run."""
    return ["+".join(operator_names(node.function)) for node in graph.nodes if node.function is not None]


def test_a_concatenation_takes_no_kernel() -> None:
    """Convolutions write their part of the result; both are read elsewhere too."""
    x = relay.var("x", shape=(1, 4, 8, 8))
    first, second = conv(x, "a", 4), conv(x, "b", 8)
    joined = relay.concatenate([first, second], axis=1)
    graph, memory = planned(relay.Tuple([conv(joined, "c", 4), relay.nn.global_avg_pool2d(first)]))
    assert kernels(graph) == ["nn.conv2d"] * 3 + ["nn.global_avg_pool2d"]
    offsets = [memory.offset_of[Entry(step)] for step, node in enumerate(graph.nodes) if node.kernel][:3]
    assert offsets == [0, 4 * 64 * 4, 0]
    check_contents(graph, memory)


def test_growing_concatenations_share_one_storage() -> None:
    """What DenseNet does, in both ways to write it: nothing is copied."""
    x = relay.var("x", shape=(1, 4, 8, 8))
    for nested in (True, False):
        layers: list[Any] = [conv(x, "w", 8)]
        value: Any = layers[0]
        for layer in range(4):
            layers.append(conv(relay.nn.relu(value), f"w{layer}", 4))
            value = relay.concatenate([value, layers[-1]] if nested else layers, axis=1)
        graph, memory = planned(conv(value, "last", 4))
        assert set(kernels(graph)) == {"nn.conv2d", "nn.relu"}
        check_contents(graph, memory)
        joins = [Entry(step) for step, node in enumerate(graph.nodes) if node.is_view]
        assert len(joins) == 4
        assert len({memory.storage_of[entry] for entry in joins}) == 1
        assert {memory.offset_of[entry] for entry in joins} == {0}


def test_what_must_be_copied_is_and_nothing_else() -> None:
    """An input, a second place of one operand, an operand of an earlier concatenation, and a part of something."""
    x = relay.var("x", shape=(1, 8, 16, 16))
    first, second = conv(x, "a", 8), conv(x, "b", 8)
    part = relay.strided_slice(second, [0, 2, 0, 0], [1, 6, 16, 16])
    cases: list[tuple[list[Any], int]] = [
        ([first, second], 0),
        ([first, x], 1),
        ([first, second, first], 1),
        ([first, part], 1),
        ([second, part, first], 1),
        ([relay.concatenate([first, second], axis=1), first], 1),
        ([part, relay.concatenate([first, second], axis=1)], 1),
    ]
    for operands, copies in cases:
        joined = conv(relay.concatenate(operands, axis=1), "last", 2)
        graph, memory = planned(relay.Tuple([joined, conv(second, "keep", 2), conv(part, "p", 2)]))
        found = kernels(graph)
        assert len([name for name in found if name != "nn.conv2d"]) == copies, found
        check_contents(graph, memory)


def test_two_concatenations_of_the_same_tensors() -> None:
    """One has them; the other one copies, in a kernel of its own."""
    x = relay.var("x", shape=(1, 4, 8, 8))
    first, second = conv(x, "a", 4), conv(x, "b", 4)
    there = conv(relay.concatenate([first, second], axis=1), "c", 4)
    back = conv(relay.concatenate([second, first], axis=1), "d", 4)
    graph, memory = planned(relay.Tuple([there, back]))
    assert sorted(kernels(graph)) == ["concatenate"] + ["nn.conv2d"] * 4
    check_contents(graph, memory)


def test_what_does_not_follow_is_joined_by_a_kernel() -> None:
    """With two images in the batch, or along the last axis, the operands are not in one piece."""
    for batch, axis in ((2, 1), (1, 3)):
        x = relay.var("x", shape=(batch, 4, 8, 8))
        joined = relay.concatenate([conv(x, "a", 4), conv(x, "b", 4)], axis=axis)
        graph, memory = planned(conv(joined, "c", 4))
        assert "concatenate" in kernels(graph)
        check_contents(graph, memory)


def test_parts_are_read_where_they_are() -> None:
    """Neither a split nor a slice along the outermost axis is a kernel, and the whole lives as long as its parts."""
    x = relay.var("x", shape=(1, 4, 8, 8))
    whole = conv(x, "a", 12)
    parts = relay.split(whole, 3, axis=1)
    low = relay.strided_slice(whole, [0, 2, 0, 0], [1, 6, 8, 8])
    results = [conv(value, f"w{number}", 2) for number, value in enumerate([*parts, low])]
    graph, memory = planned(relay.Tuple(results))
    assert kernels(graph) == ["nn.conv2d"] * 5
    check_contents(graph, memory)
    views = [
        memory.offset_of[Entry(step, output)]
        for step, node in enumerate(graph.nodes)
        if node.is_view
        for output in range(len(node.outputs))
    ]
    assert sorted(views) == [0, 2 * 256, 4 * 256, 8 * 256]


def test_results_lie_at_whole_cache_lines() -> None:
    """A part that is a result of the graph is copied if it does not; so is an operand that is a result."""
    x = relay.var("x", shape=(1, 4, 3, 3))
    whole, other = conv(x, "a", 4), conv(x, "b", 4)
    graph, memory = planned(relay.strided_slice(whole, [0, 1, 0, 0], [1, 3, 3, 3]))
    assert kernels(graph) == ["nn.conv2d", "strided_slice"]
    joined = relay.concatenate([whole, other], axis=1)
    graph, memory = planned(relay.Tuple([conv(joined, "c", 2), other]))
    assert kernels(graph) == ["nn.conv2d", "nn.conv2d", "copy", "nn.conv2d"]
    check_contents(graph, memory)
    for entry in graph.outputs:
        assert memory.offset_of[entry] % 64 == 0


def test_an_elementwise_operand_overwrites_its_argument() -> None:
    """The argument then lies where the result is wanted; and a concatenation read for the last time is overwritten."""
    x = relay.var("x", shape=(1, 4, 8, 8))
    operands = [relay.exp(relay.nn.max_pool2d(x, (3, 3), padding=(1, 1))), relay.sin(conv(x, "b", 4))]
    graph, memory = planned(relay.tanh(relay.concatenate(operands, axis=1)), level=0)
    assert "concatenate" not in kernels(graph)
    check_contents(graph, memory)
    assert memory.arena_bytes == 8 * 64 * 4


def test_parts_that_are_not_written_yet_are_free() -> None:
    """The first operand is there long before the second; what lies between is used meanwhile."""
    x = relay.var("x", shape=(1, 4, 16, 16))
    first = conv(x, "first", 8)
    value: Any = first
    for step in range(3):
        value = conv(value, f"w{step}", 8)
    graph, memory = planned(conv(relay.concatenate([first, value], axis=1), "last", 8))
    check_contents(graph, memory)
    assert memory.arena_bytes == 3 * 8 * 256 * 4


def test_a_concatenation_that_is_never_in_memory() -> None:
    """Where it is fused with what makes an operand and with what follows, it stays so."""
    x = relay.var("x", shape=(1, 4, 8, 8))
    made = relay.transpose(relay.nn.softmax(x), [0, 1, 3, 2])
    body = relay.transpose(relay.concatenate([conv(x, "a", 4), made], axis=1), [0, 2, 3, 1])
    graph, memory = planned(body)
    assert kernels(graph) == ["nn.conv2d", "nn.softmax", "transpose+concatenate+transpose"]
    check_contents(graph, memory)


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
