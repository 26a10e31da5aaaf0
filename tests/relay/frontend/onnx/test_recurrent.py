"""RNN, GRU and LSTM against ONNX Runtime."""

import json

import numpy as np
import onnx
import pytest
from tests.relay.frontend.onnx import reference_runtime

import tilewright as tvm
from tilewright import relay
from tilewright.contrib import graph_executor
from tilewright.relay.frontend.onnx import backend
from tilewright.relay.frontend.onnx.ops import recurrent

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
INPUT, HIDDEN, BATCH = 3, 4, 2


def _model(kind, steps, lengths=False, states=False, peepholes=False, bias=True, **attributes):
    """A model of one node, and inputs for it. Weights are initializers."""
    random = np.random.default_rng(7)
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    gates = GATES[kind]
    names = ["X", "W", "R", "B" if bias else "", "lengths" if lengths else "", "h" if states else ""]
    constants = {
        "W": random.normal(size=(directions, gates * HIDDEN, INPUT)),
        "R": random.normal(size=(directions, gates * HIDDEN, HIDDEN)),
        "B": random.normal(size=(directions, 2 * gates * HIDDEN)),
        "P": random.normal(size=(directions, 3 * HIDDEN)),
    }
    inputs = {"X": random.normal(size=(steps, BATCH, INPUT)).astype("float32")}
    if lengths:
        inputs["lengths"] = np.asarray([steps, max(steps - 2, 1)], "int32")
    if states:
        inputs["h"] = random.normal(size=(directions, BATCH, HIDDEN)).astype("float32")
    if kind == "LSTM":
        names += ["c" if states else "", "P" if peepholes else ""]
        if states:
            inputs["c"] = random.normal(size=(directions, BATCH, HIDDEN)).astype("float32")
    outputs = ["Y", "Y_h", *(["Y_c"] if kind == "LSTM" else [])]
    helper = onnx.helper
    node = helper.make_node(kind, names, outputs, hidden_size=HIDDEN, **attributes)
    types = {"lengths": onnx.TensorProto.INT32}
    graph = helper.make_graph(
        [node],
        "recurrent",
        [
            helper.make_tensor_value_info(name, types.get(name, onnx.TensorProto.FLOAT), value.shape)
            for name, value in inputs.items()
        ],
        [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in outputs],
        [
            onnx.numpy_helper.from_array(value.astype("float32"), name)
            for name, value in constants.items()
            if name in names
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    return model, inputs


def _check(model, inputs, executor="debug"):
    expected = reference_runtime.outputs(model, inputs)
    found = backend.prepare(model, executor=executor).run(inputs)
    for value, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(
    "settings",
    [{}, {"lengths": True, "states": True}, {"bias": False, "clip": 0.3}],
    ids=["plain", "lengths", "clip"],
)
def test_directions(kind, direction, settings):
    """All directions, with sequences of different lengths and given states, without biases and with a clip."""
    _check(*_model(kind, 4, direction=direction, **settings))


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_long_sequences(kind, monkeypatch):
    """Longer sequences of unusual cells are a loop: the same numbers, backwards and with lengths too."""
    monkeypatch.setattr(recurrent, "UNROLLED_STEPS", 4)
    _check(*_model(kind, 7, direction="bidirectional", lengths=True, states=True))


def test_peepholes_and_coupled_gates():
    """The cell looks into the gates of an LSTM."""
    _check(*_model("LSTM", 3, peepholes=True, states=True))
    _check(*_model("LSTM", 3, input_forget=1))


def test_linear_before_reset():
    """The reset gate of a GRU after the product, with and without biases."""
    _check(*_model("GRU", 3, linear_before_reset=1))
    _check(*_model("GRU", 3, linear_before_reset=1, bias=False, direction="bidirectional"))


@pytest.mark.parametrize(
    ("names", "alpha", "beta"),
    [
        (["Relu"], None, None),
        (["LeakyRelu"], [0.3], None),
        (["ThresholdedRelu"], [0.2], None),
        (["ScaledTanh"], [0.7], [1.3]),
        (["HardSigmoid"], [0.25], [0.4]),
        (["Elu"], [1.5], None),
        (["Softsign"], None, None),
        (["Softplus"], None, None),
        (["Affine"], [0.5], [0.1]),
    ],
    ids=lambda value: value[0] if isinstance(value, list) and isinstance(value[0], str) else "",
)
def test_activations(names, alpha, beta):
    """Every activation, with its numbers."""
    numbers = {"activation_alpha": alpha, "activation_beta": beta}
    given = {name: value for name, value in numbers.items() if value is not None}
    _check(*_model("RNN", 2, activations=names, **given))


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_compiled(kind):
    """Layers of the usual cells are one operator, which the graph executor runs, however many steps there are."""
    settings = {"linear_before_reset": 1} if kind == "GRU" else {}
    model, inputs = _model(kind, 150, states=True, direction="bidirectional", **settings)
    module, parameters = relay.frontend.from_onnx(model)
    assert str(module).count("nn.contrib_recurrent(") == 2
    library = relay.build(module, "llvm", params=parameters)
    executor = graph_executor.GraphModule(library["default"](tvm.cpu()))
    executor.run(**inputs)
    for place, wanted in enumerate(reference_runtime.outputs(model, inputs)):
        np.testing.assert_allclose(executor.get_output(place).numpy(), wanted, rtol=1e-4, atol=1e-5)


def test_written_out():
    """Steps of an unusual cell share their kernels: the graph executor runs them, and few kernels are compiled."""
    model, inputs = _model("GRU", 40, lengths=True)
    module, parameters = relay.frontend.from_onnx(model)
    library = relay.build(module, "llvm", params=parameters)
    kernels = {
        node["attrs"]["func_name"]
        for node in json.loads(library.get_graph_json())["nodes"]
        if "attrs" in node
    }
    assert len(kernels) < 20
    _check(model, inputs, None)


def test_loop_on_the_virtual_machine(monkeypatch):
    """An unusual cell over many steps runs where loops do."""
    monkeypatch.setattr(recurrent, "UNROLLED_STEPS", 4)
    _check(*_model("GRU", 6, direction="reverse"), None)


def test_unknown_steps_and_batch():
    """A model whose sequence and batch are symbolic runs with any."""
    model, inputs = _model("LSTM", 5, direction="bidirectional")
    shape = model.graph.input[0].type.tensor_type.shape
    shape.dim[0].dim_param, shape.dim[1].dim_param = "steps", "batch"
    prepared = backend.prepare(model, executor="debug")
    for steps, batch in ((5, 2), (1, 3)):
        data = np.random.default_rng(steps).normal(size=(steps, batch, INPUT)).astype("float32")
        expected = reference_runtime.outputs(model, {"X": data})
        for value, wanted in zip(prepared.run([data]), expected, strict=True):
            np.testing.assert_allclose(value, wanted, rtol=1e-4, atol=1e-5)
