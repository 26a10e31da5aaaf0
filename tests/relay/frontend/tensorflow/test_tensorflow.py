"""TensorFlow graphs, SavedModels and concrete functions against TensorFlow; skipped where it is not installed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.relay.frontend.interpreting import interpreted

from tilewright import relay
from tilewright.compat.tensorflow_parser import TFParser
from tilewright.driver import tvmc
from tilewright.relay.frontend.common import UnsupportedOperators
from tilewright.support.errors import ModelError

tf = pytest.importorskip("tensorflow")

RANDOM = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray[Any, Any]:
    """Numbers around zero."""
    return RANDOM.standard_normal(shape).astype("float32")


def run(module: Any, params: Any, *inputs: Any) -> list[Any]:
    """What the reference interpreter computes."""
    return interpreted(module, params, inputs)


def concrete(function: Callable[..., Any], *data: Any) -> Any:
    """A concrete function for arrays like these."""
    specs = [tf.TensorSpec(one.shape, one.dtype, name=f"in{place}") for place, one in enumerate(data)]
    return tf.function(function).get_concrete_function(*specs)


def frozen_v1(function: Callable[..., Any], *data: Any) -> tuple[Any, list[str]]:
    """A graph with control flow of version 1, and its outputs."""
    tf.compat.v1.disable_control_flow_v2()
    try:
        graph = tf.Graph()
        with graph.as_default():
            inputs = [
                tf.compat.v1.placeholder(one.dtype, one.shape, name=f"in{place}")
                for place, one in enumerate(data)
            ]
            outputs = tf.nest.flatten(function(*inputs))
        return graph.as_graph_def(), [one.name for one in outputs]
    finally:
        tf.compat.v1.enable_control_flow_v2()


def check(function: Callable[..., Any], *data: Any, version_1: bool = True) -> None:
    """A function gives the same through a concrete function and through a graph of version 1."""
    made = concrete(function, *data)
    expected = [one.numpy() for one in tf.nest.flatten(made(*map(tf.constant, data)))]
    results = [run(*relay.frontend.from_tensorflow(made), *data)]
    if version_1:
        graph, outputs = frozen_v1(function, *data)
        results.append(run(*relay.frontend.from_tensorflow(graph, outputs=outputs), *data))
    for found in results:
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def array_of_sums(data: Any) -> Any:
    """A TensorArray that a loop writes, and its last element."""
    found = tf.TensorArray(tf.float32, size=4)
    _, found, last = tf.while_loop(
        lambda step, written, total: step < 4,
        lambda step, written, total: (step + 1, written.write(step, total + data[step]), total + data[step]),
        (0, found, tf.zeros([3])),
    )
    return found.stack(), last


def growing_array(data: Any) -> Any:
    """A TensorArray that has no elements at first, and one more after each round."""
    found = tf.TensorArray(tf.float32, size=0, dynamic_size=True, element_shape=[3])
    _, found = tf.while_loop(
        lambda step, written: step < 4,
        lambda step, written: (step + 1, written.write(step, data[step] * 2)),
        (0, found),
    )
    return found.stack()


def nested_loops(data: Any) -> Any:
    """A loop inside a loop that reads the outer one's counter."""
    return tf.while_loop(
        lambda outer, value: outer < 3,
        lambda outer, value: (
            outer + 1,
            tf.while_loop(
                lambda inner, kept: inner < 2,
                lambda inner, kept: (inner + 1, kept * 1.5 + tf.cast(outer, tf.float32)),
                (0, value),
            )[1],
        ),
        (0, data),
    )[1]


FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "loop": (
        lambda x: tf.while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, y * 2 + x), (0, x))[1],
        (floats(2, 3),),
    ),
    "nested loops": (nested_loops, (floats(2),)),
    "condition": (lambda x: tf.cond(tf.reduce_sum(x) > 0, lambda: x + 1, lambda: 3.0 - x), (floats(2, 3),)),
    "constant side": (
        lambda p, x: tf.cond(p, lambda: tf.ones([2]), lambda: x),
        (np.asarray(True), floats(2)),
    ),
    "nested conditions": (
        lambda p, x: tf.cond(p, lambda: tf.cond(x[0] > 0, lambda: x + 1, lambda: x * 2), lambda: x - 1),
        (np.asarray(True), floats(2)),
    ),
    "tensor array": (array_of_sums, (floats(4, 3),)),
    "growing array": (growing_array, (floats(4, 3),)),
    "split array": (
        lambda x: tf.TensorArray(tf.float32, 2, infer_shape=False).split(x, [2, 2]).read(1),
        (floats(4, 3),),
    ),
    "map": (lambda x: tf.map_fn(lambda row: row * 2 + tf.reduce_sum(row), x), (floats(3, 4),)),
    "layers": (
        lambda x: tf.nn.max_pool2d(
            tf.nn.relu(tf.nn.conv2d(x, tf.constant(FILTER), [1, 2, 2, 1], "SAME") + 0.5), 2, 2, "SAME"
        ),
        (floats(1, 9, 8, 4),),
    ),
    "transposed": (
        lambda x: tf.nn.conv2d_transpose(x, tf.constant(FILTER), [1, 8, 10, 4], [1, 2, 2, 1], "SAME"),
        (floats(1, 4, 5, 5),),
    ),
    "depthwise": (
        lambda x: tf.nn.depthwise_conv2d(x, tf.constant(FILTER[..., :2]), [1, 1, 1, 1], "VALID"),
        (floats(1, 6, 6, 4),),
    ),
    "subscripts": (lambda x: (x[:, 1:5:2, None, ::-1], x[1, ..., 2]), (floats(2, 6, 3),)),
    "shapes": (
        lambda x: tf.reshape(x, [tf.shape(x)[0] * 2, -1]) + tf.cast(tf.size(x), tf.float32),
        (floats(3, 4),),
    ),
    "products": (lambda a, b: tf.matmul(a, b, transpose_b=True), (floats(2, 3, 4), floats(2, 5, 4))),
    "suppression": (
        lambda b, s: tf.image.non_max_suppression(b, s, 3, 0.5, 0.2),
        (
            np.asarray([[0, 0, 1, 1], [0, 0, 1, 0.9], [2, 2, 3, 3]], "float32"),
            np.asarray([0.9, 0.8, 0.7], "float32"),
        ),
    ),
}
FILTER = floats(3, 3, 4, 5)


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_functions(name: str) -> None:
    """Control flow of both versions, and families of operators."""
    function, data = FUNCTIONS[name]
    check(function, *data)


ROWS, SEGMENTS = floats(5, 3), np.asarray([0, 0, 1, 3, 3], "int32")
WHOLE = np.asarray([3, 1, 3, 2, 1], "int32")
OPERATORS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "segments": (
        lambda x, s: [getattr(tf.math, f"segment_{name}")(x, s) for name in ("sum", "prod", "max", "min", "mean")],
        (ROWS, SEGMENTS),
    ),
    "unsorted segments": (
        lambda x, s: [
            getattr(tf.math, f"unsorted_segment_{name}")(x, s, 5) for name in ("sum", "prod", "max", "min", "mean")
        ],
        (ROWS, SEGMENTS[::-1].copy()),
    ),
    "updates": (
        lambda x, u: [
            getattr(tf, f"tensor_scatter_nd_{name}")(x, [[1], [3]], u) for name in ("sub", "add", "max", "min")
        ],
        (ROWS, floats(2, 3)),
    ),
    "partitions": (
        lambda x, p: tf.dynamic_stitch(tf.dynamic_partition(tf.range(5), p, 2), tf.dynamic_partition(x * 2, p, 2)),
        (ROWS, np.asarray([0, 1, 1, 0, 1], "int32")),
    ),
    "counts": (
        lambda x: (
            tf.math.bincount(x, minlength=6, maxlength=6),
            tf.raw_ops.DenseBincount(input=[[1, 1, 9], [0, 3, 0]], size=4, weights=tf.zeros([0]), binary_output=True),
            tf.raw_ops.ListDiff(x=x, y=[3, 4]),
            tf.raw_ops.UniqueWithCountsV2(x=x, axis=[0]),
        ),
        (WHOLE,),
    ),
    "ranges": (
        lambda x: (
            tf.raw_ops.Bucketize(input=x, boundaries=[-1.0, 0.0, 1.0]),
            tf.searchsorted(tf.sort(x), x),
            tf.searchsorted(tf.sort(x), x, side="right"),
            tf.raw_ops.NthElement(input=x, n=1),
        ),
        (floats(2, 5),),
    ),
    "in top k": (lambda t, p: tf.math.in_top_k(t, p, 2), (np.asarray([0, 1, 7], "int32"), floats(3, 5))),
    "special": (
        lambda x: (
            tf.math.lgamma(x + 2), tf.math.digamma(x + 2), tf.math.erfinv(x), tf.math.ndtri((x + 1) / 2),
            tf.math.cumulative_logsumexp(x * 200, 1), tf.math.cumulative_logsumexp(x, 0, reverse=True),
        ),
        (np.tanh(floats(2, 3)),),
    ),
    "losses": (
        lambda x: (
            tf.nn.softmax_cross_entropy_with_logits(tf.eye(4, 5), x),
            tf.nn.sparse_softmax_cross_entropy_with_logits([0, 1, 4, 2], x),
        ),
        (floats(4, 5),),
    ),
    "cross products": (lambda a, b: tf.linalg.cross(a, b), (floats(4, 3), floats(4, 3))),
    "statistics of a batch": (
        lambda x: tf.raw_ops.FusedBatchNormV3(
            x=x, scale=[1.0, 2.0], offset=[3.0, 4.0], mean=tf.zeros([0]), variance=tf.zeros([0]), is_training=True
        )[:5],
        (floats(2, 3, 4, 2),),
    ),
    "patches": (
        lambda x: (
            tf.image.extract_patches(x, [1, 3, 2, 1], [1, 2, 1, 1], [1, 1, 2, 1], "SAME"),
            tf.image.extract_patches(x, [1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID"),
        ),
        (floats(2, 7, 8, 3),),
    ),
    "rounded numbers": (
        lambda x: (
            tf.quantization.fake_quant_with_min_max_args(x, -2, 2),
            tf.quantization.fake_quant_with_min_max_vars(x, -1.0, 2.0, narrow_range=True),
            tf.quantization.fake_quant_with_min_max_vars_per_channel(x, [-1.0] * 4, [1.0, 2, 3, 4]),
            tf.quantization.quantize_and_dequantize_v2(x, -1.0, 1.0, range_given=True),
            tf.quantization.quantize_and_dequantize_v2(x, 0.0, 0.0, signed_input=False),
        ),
        (floats(3, 4),),
    ),
    "colours": (
        lambda x: (
            tf.image.adjust_contrast(x, 1.5), tf.image.adjust_hue(x, 0.1), tf.image.adjust_saturation(x, 0.4),
            tf.image.rgb_to_hsv(x), tf.image.hsv_to_rgb(x),
        ),
        (RANDOM.random((1, 4, 4, 3)).astype("float32"),),
    ),
    "diagonals": (
        lambda x: (
            tf.linalg.diag(x, k=1), tf.linalg.diag(x, k=-2, num_rows=7, padding_value=2.0),
            tf.linalg.diag_part(x, k=-1), tf.linalg.tensor_diag(x[0, 0]),
            tf.linalg.tensor_diag_part(tf.linalg.tensor_diag(x[0, 0])), tf.linalg.band_part(x, 1, 0),
        ),
        (floats(2, 3, 4),),
    ),
    "blocks and pools": (
        lambda x: (
            tf.raw_ops.SpaceToBatch(input=x, paddings=[[0, 0], [1, 0]], block_size=2),
            tf.raw_ops.BatchToSpace(input=tf.tile(x, [2, 1, 1, 1]), crops=[[0, 0], [1, 0]], block_size=2),
            tf.raw_ops.MaxPoolV2(input=x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME"),
        ),
        (floats(2, 4, 5, 2),),
    ),
    "matrices": (
        lambda x, b: (
            tf.linalg.inv(x), tf.linalg.det(x), tf.linalg.cholesky(tf.matmul(x[0, 0], x[0, 0], transpose_b=True)),
            tf.linalg.solve(x, b), tf.linalg.triangular_solve(x, b), tf.linalg.triangular_solve(x, b, lower=False),
            tf.linalg.triangular_solve(x, b, adjoint=True),
        ),
        (floats(1, 2, 3, 3) + 4 * np.eye(3, dtype="float32"), floats(1, 2, 3, 2)),
    ),
}  # fmt: skip


def recurrent_weights(*shape: int) -> Any:
    """A weight that is the same in every trace."""
    return tf.constant(np.random.default_rng(3).standard_normal(shape).astype("float32"))


@pytest.mark.parametrize("name", ["BlockLSTM", "BlockLSTMV2", "LSTMBlockCell"])
def test_blocks_of_a_recurrent_network(name: str) -> None:
    """A step, and a sequence of which only the first steps count, with peepholes."""
    peepholes = {f"wc{letter}": recurrent_weights(4) for letter in "ifo"}
    if name == "LSTMBlockCell":
        arguments: dict[str, Any] = {"forget_bias": 0.5, "cell_clip": 0.4}
    else:
        arguments = {"seq_len_max": tf.constant(4, tf.int64)}
    shape = (2, 3) if name == "LSTMBlockCell" else (5, 2, 3)

    def network(x: Any, output: Any, state: Any) -> Any:
        weight, bias = recurrent_weights(7, 16), recurrent_weights(16)
        operator = getattr(tf.raw_ops, name)
        made = operator(
            x=x, cs_prev=state, h_prev=output, w=weight, b=bias, use_peephole=True, **peepholes, **arguments
        )
        return made.h if name == "LSTMBlockCell" else made.h[:4]

    check(network, floats(*shape), floats(2, 4), floats(2, 4), version_1=False)


def test_a_block_of_a_gated_unit() -> None:
    """One step; the update gate keeps what was there."""

    def network(x: Any, output: Any) -> Any:
        return tf.raw_ops.GRUBlockCell(
            x=x,
            h_prev=output,
            w_ru=recurrent_weights(7, 8),
            w_c=recurrent_weights(7, 4),
            b_ru=recurrent_weights(8),
            b_c=recurrent_weights(4),
        )

    check(network, floats(2, 3), floats(2, 4), version_1=False)


@pytest.mark.parametrize("number", [0, 1, 2, 5, -1])
def test_cases(number: int) -> None:
    """One of several branches by its number; the last one for a number that there is not."""

    def chosen(index: Any, x: Any) -> Any:
        return tf.switch_case(
            index,
            [lambda: tf.ones([2]), lambda: x * 2, lambda: tf.cond(x[0] > 0, lambda: x + 1, lambda: x - 1)],
        )

    check(chosen, np.asarray(number, "int32"), floats(2), version_1=False)


def test_padding_of_open_sizes() -> None:
    """Padding SAME with steps, amounts of padding, and sizes of images that only the program knows."""
    weight = tf.constant(FILTER)

    def network(x: Any) -> Any:
        return (
            tf.nn.conv2d(x, weight, 2, "SAME"),
            tf.nn.conv2d(x, weight, [1, 3, 1, 1], "SAME", dilations=1),
            tf.nn.depthwise_conv2d(x, weight[..., :2], [1, 2, 2, 1], "SAME"),
            tf.nn.max_pool2d(x, 3, 2, "SAME"),
            tf.pad(x[:, :, 0, 0], [[0, 0], [0, 12 - tf.shape(x)[1]]]),
            tf.image.resize(x, tf.shape(x)[1:3] * 2),
            tf.linalg.band_part(x[..., 0], -1, 0),
        )

    made = tf.function(network).get_concrete_function(tf.TensorSpec((None, None, None, 4), name="x"))
    module, params = relay.frontend.from_tensorflow(made)
    for shape in ((1, 9, 8, 4), (2, 6, 11, 4)):
        data = -np.abs(floats(*shape))
        for found, expected in zip(run(module, params, data), made(tf.constant(data)), strict=True):
            np.testing.assert_allclose(found, expected.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("is_constant", [True, False])
def test_a_file_that_the_model_decodes(is_constant: bool) -> None:
    """The decoded image is the input, where its shape is given for the file."""
    graph = tf.Graph()
    with graph.as_default():
        name = "DecodeJpeg/contents"
        file = (
            tf.constant(b"", name=name) if is_constant else tf.compat.v1.placeholder(tf.string, [], name=name)
        )
        image = tf.cast(tf.io.decode_jpeg(file, channels=3), tf.float32)
        scaled = tf.multiply(image - 128.0, 0.5, name="scaled")
    proto, data = graph.as_graph_def(), RANDOM.integers(0, 255, (4, 5, 3)).astype("uint8")
    module, params = relay.frontend.from_tensorflow(proto, shape={name: data.shape}, outputs=[scaled.name])
    assert [one.name_hint for one in module["main"].params] == [name]
    np.testing.assert_array_equal(run(module, params, data)[0], (data - np.float32(128)) * 0.5)
    with pytest.raises(ModelError, match="decoded"):
        relay.frontend.from_tensorflow(proto, outputs=[scaled.name])


@pytest.mark.parametrize("name", list(OPERATORS))
def test_operators(name: str) -> None:
    """Operators by families, as TensorFlow computes them."""
    function, data = OPERATORS[name]
    check(function, *data)


def test_a_list_of_open_elements() -> None:
    """What a loop writes to a list may have sizes that only the program knows."""

    def running(x: Any) -> Any:
        found = tf.TensorArray(tf.float32, size=tf.shape(x)[0])
        _, found, _ = tf.while_loop(
            lambda step, written, total: step < tf.shape(x)[0],
            lambda step, written, total: (step + 1, written.write(step, total + x[step]), total + x[step]),
            (0, found, tf.zeros_like(x[0])),
        )
        return found.stack()

    made = tf.function(running).get_concrete_function(tf.TensorSpec((None, None, 3), name="x"))
    module, params = relay.frontend.from_tensorflow(made)
    data = floats(4, 2, 3)
    np.testing.assert_allclose(run(module, params, data)[0], np.cumsum(data, 0), rtol=1e-5)


def test_a_slice_of_computed_sizes() -> None:
    """A size of -1 that only the program knows is all that is left."""
    made = concrete(lambda x, s: tf.slice(x, [1, 0], s), floats(3, 4), np.zeros(2, "int32"))
    module, params = relay.frontend.from_tensorflow(made)
    data = floats(3, 4)
    for sizes, expected in (([1, -1], data[1:2]), ([-1, 2], data[1:, :2])):
        np.testing.assert_array_equal(run(module, params, data, np.asarray(sizes, "int32"))[0], expected)


def test_a_loop_that_grows_its_value() -> None:
    """A size that changes from round to round is unknown in the program."""
    grown = [tf.TensorShape([]), tf.TensorShape([None, 3])]
    check(
        lambda x: tf.while_loop(
            lambda i, y: i < 3,
            lambda i, y: (i + 1, tf.concat([y, x], 0)),
            (0, x),
            shape_invariants=tuple(grown),
        )[1],
        floats(1, 3),
    )


def test_a_saved_model(tmp_path: Path) -> None:
    """Variables become parameters; the folder's format is told by what is in it; outputs have the model's names."""

    class Scaled(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = tf.Variable(floats(4, 3))

        @tf.function(input_signature=[tf.TensorSpec((2, 4), tf.float32, name="x")])
        def __call__(self, x: Any) -> Any:
            return {"scaled": x @ self.weight}

    saved, data = Scaled(), floats(2, 4)
    tf.saved_model.save(saved, str(tmp_path / "model"))
    loaded = tvmc.load(str(tmp_path / "model"))
    assert relay.frontend.registry.guess_frontend(str(tmp_path / "model")).name == "saved_model"
    (made,) = run(loaded.mod, loaded.params, data)
    np.testing.assert_allclose(made, data @ saved.weight.numpy(), rtol=1e-5)
    assert len(loaded.params) == 1
    with pytest.raises(ModelError, match="no signature 'other'; it has serving_default"):
        relay.frontend.from_tensorflow(str(tmp_path / "model"), convert_config={"signature": "other"})


def test_a_frozen_graph_in_a_file(tmp_path: Path) -> None:
    """Without outputs the last node is the output; shapes can be given; NCHW is asked for once."""
    graph, _ = frozen_v1(
        lambda x: tf.nn.relu(tf.nn.conv2d(x, tf.constant(FILTER), 1, "SAME")), floats(1, 6, 6, 4)
    )
    path = tmp_path / "graph.pb"
    path.write_bytes(graph.SerializeToString())
    assert relay.frontend.registry.guess_frontend(str(path)).name == "pb"
    module, params = relay.frontend.from_tensorflow(str(path), shape={"in0": (2, 6, 6, 4)})
    data = floats(2, 6, 6, 4)
    (made,) = run(module, params, data)
    np.testing.assert_allclose(made, tf.nn.relu(tf.nn.conv2d(data, FILTER, 1, "SAME")), rtol=1e-4, atol=1e-5)
    turned, params = relay.frontend.from_tensorflow(str(path), layout="NCHW", shape={"in0": (2, 6, 6, 4)})
    assert 'data_layout="NHWC"' not in turned.astext()
    np.testing.assert_allclose(run(turned, params, data)[0], made, rtol=1e-4, atol=1e-5)


def test_an_open_batch_stays_open() -> None:
    """A dimension that the graph leaves open is unknown in the program."""
    function = tf.function(lambda x: tf.reshape(x * 2, [tf.shape(x)[0], -1])).get_concrete_function(
        tf.TensorSpec((None, 2, 3), tf.float32)
    )
    module, params = relay.frontend.from_tensorflow(function)
    data = floats(5, 2, 3)
    np.testing.assert_allclose(run(module, params, data)[0], data.reshape(5, 6) * 2, rtol=1e-6)


def test_everything_unsupported_is_in_one_error() -> None:
    """Only what the outputs depend on counts; strings are refused."""
    graph, outputs = frozen_v1(lambda x: tf.math.bessel_i0(tf.math.bessel_i1(x)), floats(2))
    with pytest.raises(UnsupportedOperators, match="2 operators") as error:
        relay.frontend.from_tensorflow(graph, outputs=outputs)
    assert "BesselI0, 1" in str(error.value) and "BesselI1, 1" in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"), [(b"", "has no nodes"), (b"random bytes", "is not a TensorFlow graph")]
)
def test_bad_files(content: bytes, message: str, tmp_path: Path) -> None:
    """With what was wrong."""
    path = tmp_path / "graph.pb"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=message):
        relay.frontend.from_tensorflow(str(path))
    with pytest.raises(ModelError, match="without a saved_model.pb"):
        relay.frontend.from_tensorflow(str(tmp_path))


def test_the_reader_of_tvm(tmp_path: Path) -> None:
    """``TFParser`` gives the graph of a file; with outputs, only the nodes that these depend on."""
    graph, _ = frozen_v1(lambda x: (tf.nn.relu(x, name="kept"), tf.exp(x, name="left_out")), floats(2))
    path = tmp_path / "graph.pb"
    path.write_bytes(graph.SerializeToString())
    assert TFParser(str(path)).parse() == graph
    parsed = TFParser(str(path), outputs=["kept:0"]).parse()
    assert [node.name for node in parsed.node] == ["in0", "kept"]
    data = floats(2)
    np.testing.assert_array_equal(run(*relay.frontend.from_tensorflow(parsed), data)[0], np.maximum(data, 0))
