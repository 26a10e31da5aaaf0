"""MXNet's files: symbols, parameters in each form, pairs of files, and files that are damaged."""

from __future__ import annotations

import contextlib
import json
import random
import struct
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.relay.frontend.mxnet.models import MAGIC, Array, Symbol, array_bytes, parameters_file, run

import tilewright as tvm
from tilewright import relay
from tilewright.contrib import graph_executor
from tilewright.driver import tvmc
from tilewright.relay.frontend.common import ShapeNeeded, UnsupportedOperators
from tilewright.relay.frontend.mxnet.parameters import read_arrays
from tilewright.relay.frontend.mxnet.registry import converted_names
from tilewright.support.errors import ModelError

RANDOM = np.random.default_rng(1)
DATA = RANDOM.standard_normal((2, 3)).astype("float32")
WEIGHTS: dict[str, Array] = {
    "arg:fc_weight": RANDOM.standard_normal((4, 3)).astype("float32"),
    "arg:fc_bias": RANDOM.standard_normal(4).astype("float32"),
    "aux:unused": np.arange(3, dtype="int64"),
}
EXPECTED = np.maximum(DATA @ WEIGHTS["arg:fc_weight"].T + WEIGHTS["arg:fc_bias"], 0)


def network(key: str = "attrs") -> str:
    """A fully connected layer and an activation."""
    symbol = Symbol(key)
    inputs = [symbol.variable(name) for name in ("data", "fc_weight", "fc_bias")]
    layer = symbol.node("FullyConnected", "fc", *inputs, num_hidden=4)
    symbol.node("Activation", "relu", layer, act_type="relu")
    return symbol.text()


FILE = parameters_file(WEIGHTS)


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_each_form_of_arrays(version: int) -> None:
    """Values, shapes and element types come back."""
    names, arrays = read_arrays(parameters_file(WEIGHTS, version))
    assert names == list(WEIGHTS)
    for found, value in zip(arrays, WEIGHTS.values(), strict=True):
        assert found is not None and found.dtype == value.dtype
        np.testing.assert_array_equal(found, value)


def test_arrays_without_axes() -> None:
    """In the third form they are numbers, in the second they are not there."""
    for version, expected in ((3, np.float32(5)), (2, None)):
        head = struct.pack("<Iii", MAGIC[version], 0, 0)
        body = struct.pack("<iiif", 1, 0, 0, 5.0) if version == 3 else b""
        content = struct.pack("<QQQ", 0x112, 0, 1) + head + body + struct.pack("<Q", 0)
        assert read_arrays(content) == ([], [expected])


@pytest.mark.parametrize("key", ["attrs", "attr", "param"])
def test_a_symbol_of_each_generation(key: str) -> None:
    """Attributes have had three names."""
    made = run(network(key), {"data": DATA}, arg_params=FILE)
    np.testing.assert_allclose(made[0], EXPECTED, rtol=1e-5)


def test_parameters_as_dictionaries() -> None:
    """Of NumPy arrays, and of objects with ``asnumpy``; the symbol is an object with ``tojson``."""

    class Held:
        def __init__(self, value: Any) -> None:
            self.value = value

        def asnumpy(self) -> Any:
            return self.value

        def tojson(self) -> Any:
            return self.value

    arrays = {name[4:]: Held(value) for name, value in WEIGHTS.items()}
    made = run(Held(network()), {"data": DATA}, arg_params=arrays, aux_params={})
    np.testing.assert_allclose(made[0], EXPECTED, rtol=1e-5)


def test_a_block_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Is called with a symbol of each input that ``shape`` names, and has its own parameters."""

    class Held:
        def __init__(self, value: Any) -> None:
            self.value = value

        def data(self) -> Any:
            return self.value

    class Traced:
        def tojson(self) -> str:
            return network()

    class Block:
        def __call__(self, *inputs: Any) -> Any:
            assert inputs == ("symbol of data",)
            return Traced()

        def collect_params(self) -> Any:
            return {name[4:]: Held(value) for name, value in WEIGHTS.items()}

    monkeypatch.setitem(sys.modules, "mxnet", None)
    with pytest.raises(ModelError, match="needs the mxnet package; block.export"):
        run(Block(), {"data": DATA})
    package = types.SimpleNamespace(sym=types.SimpleNamespace(Variable="symbol of {}".format))
    monkeypatch.setitem(sys.modules, "mxnet", package)
    np.testing.assert_allclose(run(Block(), {"data": DATA})[0], EXPECTED, rtol=1e-5)
    with pytest.raises(ModelError, match="has its own parameters"):
        run(Block(), {"data": DATA}, arg_params=WEIGHTS)
    with pytest.raises(ModelError, match="give shape="):
        run(Block(), {})


def test_a_compiled_model_and_its_names() -> None:
    """The module has the input, the parameters by their names, the name of the output, and spans of nodes."""
    module, params = relay.frontend.from_mxnet(network(), {"data": (2, 3)}, arg_params=FILE)
    assert [one.name_hint for one in module["main"].params] == ["data", "fc_weight", "fc_bias"]
    assert sorted(params) == ["fc_bias", "fc_weight"]
    assert module["main"].body.span.source_name.name == "Activation relu"
    built = relay.build(module, "llvm", params=params)
    run_time = graph_executor.GraphModule(built["default"](tvm.cpu()))
    run_time.run(data=DATA)
    np.testing.assert_allclose(run_time.get_output(0).numpy(), EXPECTED, rtol=1e-5)


def test_the_command_line_reads_a_pair_of_files(tmp_path: Path) -> None:
    """The format is told by the content; the parameters of the last epoch are beside the symbol."""
    (tmp_path / "net-symbol.json").write_text(network())
    (tmp_path / "net-0000.params").write_bytes(b"not these")
    (tmp_path / "net-0010.params").write_bytes(FILE)
    loaded = tvmc.load(str(tmp_path / "net-symbol.json"), shape_dict={"data": (2, 3)})
    assert sorted(loaded.params) == ["fc_bias", "fc_weight"]
    described = relay.frontend.registry.find_frontend("mxnet").describe
    assert described is not None
    found = described(str(tmp_path / "net-symbol.json"))
    assert found.producer == "MXNet 1.9.1" and found.operators == {"FullyConnected": 1, "Activation": 1}
    assert [one.name for one in found.inputs] == ["data"] and found.outputs[0].name == "relu_output"
    with pytest.raises(ModelError, match="holds parameters only: name the symbol's file"):
        relay.frontend.import_model(str(tmp_path / "net-0010.params"))


def test_everything_unsupported_is_in_one_error() -> None:
    """With the names of nodes; what no head depends on does not count."""
    symbol = Symbol()
    data = symbol.variable("data")
    symbol.node("Loss", "unused", data)
    one = symbol.node("CTCLoss", "first", data)
    two = symbol.node("Custom", "second", one)
    symbol.node("CTCLoss", "third", two)
    with pytest.raises(UnsupportedOperators) as raised:
        relay.frontend.from_mxnet(symbol.text(), {"data": (2,)})
    found = {each.operator: each.nodes for each in raised.value.operators}
    assert found == {"CTCLoss": ["first", "third"], "Custom": ["second"]}


# What is missing


def test_missing_parameters_are_named() -> None:
    """And how to give them."""
    few = {"fc_weight": WEIGHTS["arg:fc_weight"]}
    with pytest.raises(ShapeNeeded, match="'fc_bias' is not among the parameters"):
        relay.frontend.from_mxnet(network(), {"data": (2, 3)}, arg_params=few)
    with pytest.raises(ModelError, match="no input 'image'; it has data"):
        relay.frontend.from_mxnet(network(), {"image": (2, 3)}, arg_params=FILE)
    with pytest.raises(ModelError, match=r"node 'fc' \(FullyConnected\)"):
        relay.frontend.from_mxnet(network(), {"data": (2, 7)}, arg_params=FILE)


@pytest.mark.parametrize(
    ("symbol", "message"),
    [
        ("{", "is not an MXNet symbol"),
        ("{}", "no list 'nodes'"),
        ('{"nodes": []}', "no 'heads'"),
        ('{"nodes": [3], "heads": [[0, 0, 0]]}', "node 0 has no 'op'"),
        (
            '{"nodes": [{"op": "abs", "name": "a", "inputs": [[0, 0, 0]]}], "heads": [[0, 0]]}',
            "not before it",
        ),
        ('{"nodes": [{"op": "null", "name": "a", "inputs": [[-1, 0]]}], "heads": [[0, 0]]}', "does not name"),
        ('{"nodes": [{"op": "null", "name": "a"}], "heads": [[9, 0]]}', "reads node 9"),
        ('{"nodes": [{"op": "null", "name": "a", "attrs": 3}], "heads": [[0, 0]]}', "is not an object"),
        ('{"nodes": ' + "[" * 100000, "is not an MXNet symbol"),
        ("nowhere-symbol.json", "there is no MXNet symbol"),
        (3, "not a int"),
    ],
)
def test_other_symbols_are_refused(symbol: Any, message: str) -> None:
    """With what was wrong."""
    with pytest.raises(ModelError, match=message):
        relay.frontend.from_mxnet(symbol, {"a": (2,)})


@pytest.mark.parametrize(
    ("operator", "attributes", "message"),
    [
        ("Convolution", {"kernel": "(3, 3"}, "'kernel' is '(3, 3'"),
        ("Convolution", {"kernel": "(3,)", "num_filter": 2}, "there are 2 axes of space"),
        ("Reshape", {"shape": "(7, 7)"}, "made"),
        ("transpose", {"axes": "(0, 9, 1, 2)"}, "made"),
        ("softmax", {"axis": 9}, "axis 9 is out of range"),
        ("clip", {"a_min": "low"}, "'a_min' is 'low', not a number"),
        ("_zeros", {"shape": "(99999999, 99999999, 9999)"}, "made"),
    ],
)
def test_impossible_attributes_name_their_node(
    operator: str, attributes: dict[str, Any], message: str
) -> None:
    """Nothing is allocated for them."""
    symbol = Symbol()
    data = symbol.variable("data")
    inputs = {"Convolution": [data, data], "_zeros": []}.get(operator, [data])
    symbol.node(operator, "made", *inputs, **attributes)
    with pytest.raises(ModelError) as raised:
        relay.frontend.from_mxnet(symbol.text(), {"data": (1, 2, 5, 5)})
    assert message in str(raised.value)


# Attacks


def test_truncated_parameters_are_refused() -> None:
    """At every length."""
    for size in range(len(FILE)):
        with pytest.raises(ModelError):
            read_arrays(FILE[:size])
    with pytest.raises(ModelError, match="1 bytes after its last name"):
        read_arrays(FILE + b"x")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "ends within the head"),
        (struct.pack("<QQQ", 0x113, 0, 0), "begins with 0x113"),
        (struct.pack("<QQQ", 0x112, 0, 2**63), "more than its size allows"),
        (
            struct.pack("<QQQIiiqqiiiQ", 0x112, 0, 1, MAGIC[2], 0, 2, 2**40, 2**40, 1, 0, 0, 0),
            "impossible shape",
        ),
        (struct.pack("<QQQIiiqqiiiQ", 0x112, 0, 1, MAGIC[2], 0, 2, -1, -8, 1, 0, 0, 0), "impossible shape"),
        (
            struct.pack("<QQQIiiqiiiQ", 0x112, 0, 1, MAGIC[2], 0, 1, 2**30, 1, 0, 0, 0),
            "ends within the values",
        ),
        (struct.pack("<QQQIiiqiiiQ", 0x112, 0, 1, MAGIC[2], 0, 1, 1, 1, 0, 77, 0), "unknown element type 77"),
        (struct.pack("<QQQIiiqiiiQ", 0x112, 0, 1, MAGIC[2], 1, 1, 1, 1, 0, 0, 0), "is sparse"),
        (struct.pack("<QQQIii", 0x112, 0, 1, MAGIC[2], 0, 2**30), "has 1073741824 axes"),
        (struct.pack("<QQQ", 0x112, 0, 1) + array_bytes(DATA) + struct.pack("<Q", 0), "1 arrays and 0 names"),
    ],
)
def test_impossible_parameters_are_refused(content: bytes, message: str) -> None:
    """Before anything is allocated."""
    with pytest.raises(ModelError, match=message):
        relay.frontend.from_mxnet(network(), {"data": (2, 3)}, arg_params=content)


def test_random_damage_is_an_error_or_a_model() -> None:
    """Whatever bytes change: a model, or a ``ModelError``."""
    chance = random.Random(5)
    text = network()
    for _ in range(150):
        content = bytearray(FILE)
        for _ in range(chance.randint(1, 4)):
            content[chance.randrange(len(content))] = chance.randrange(256)
        letters = list(json.dumps(json.loads(text)))
        letters[chance.randrange(len(letters))] = chance.choice('0129-[]{}",abL')
        for symbol, given in ((text, bytes(content)), ("".join(letters), FILE)):
            with contextlib.suppress(ModelError):
                relay.frontend.from_mxnet(symbol, {"data": (2, 3)}, arg_params=given)


_ATTRIBUTES = (
    "kernel", "stride", "pad", "dilate", "num_filter", "num_group", "axis", "axes", "shape", "begin", "end", "step",
    "num_hidden", "act_type", "scalar", "k", "size", "reps", "repeats", "dim", "depth", "num_outputs", "scale",
    "pad_width", "mode", "heads", "eps", "layout", "target_shape", "a_min", "a_max", "keepdims", "dtype", "sizes",
)  # fmt: skip
_TEXTS = (
    "0", "1", "-1", "7", "(1,)", "(2, 2)", "(0, -1)", "(3, 3, 3)", "()", "None", "True", "bogus", "1e30", "99999999999",
    "(99999999, 99999999)", "nan", "inf", "[[1]]", "'a'", "{1: 2}",
)  # fmt: skip
_SHAPES = ((), (1,), (2, 3), (1, 4, 5), (1, 2, 5, 5), (0, 3), (1, 2, 3, 4, 5))


def test_operators_with_hostile_attributes() -> None:
    """Every operator, with inputs and attributes that do not fit: a model, or a ``ModelError`` that names the node."""
    chance = random.Random(1)
    refused: list[str] = []
    for operator in converted_names():
        for _ in range(2):
            symbol = Symbol()
            shapes = {f"input{place}": chance.choice(_SHAPES) for place in range(chance.randint(0, 5))}
            inputs = [symbol.variable(name) for name in shapes]
            attributes = {
                chance.choice(_ATTRIBUTES): chance.choice(_TEXTS) for _ in range(chance.randint(0, 4))
            }
            symbol.node(operator, "made", *inputs, **attributes)
            try:
                relay.frontend.from_mxnet(symbol.text(), shapes, chance.choice(["float32", "int32"]))
            except ModelError as error:
                refused.append(str(error))
    assert len(refused) > len(converted_names())
    assert all("made" in one or "input" in one for one in refused)
