"""JSON of nodes."""

import json

import numpy as np
import pytest

from tilewright import relay
from tilewright.ir import operators
from tilewright.ir.attrs import DictAttrs
from tilewright.ir.buffer import decl_buffer
from tilewright.ir.container import Array, Map
from tilewright.ir.expr import FloatImm, PrimExpr, SizeVar, Var
from tilewright.ir.module import IRModule
from tilewright.ir.serialize import SerializationError, load_json, save_json
from tilewright.ir.structural import assert_structural_equal
from tilewright.ir.tensor_type import TensorType
from tilewright.runtime import ndarray
from tilewright.support.span import SourceName, Span
from tilewright.target import Target
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import Allocate, BufferStore, Evaluate, For, ForKind, Store


def sample() -> PrimFunc:
    """A function with a symbolic buffer, an allocation, a parallel loop and attributes."""
    n = SizeVar("n", "int32")
    buffer = decl_buffer((n,), "float32", name="A")
    i, pointer = Var("i"), Var("p", "handle")
    exponential = operators.call("exp", "float32", [buffer[i]])
    store = BufferStore(buffer, exponential * 2.5, [i])
    body = Allocate(
        pointer, "float32", [16], True, For(i, 0, n, ForKind.PARALLEL, store, None, {"key": "value"})
    )
    return PrimFunc([buffer], body).with_attr({"global_symbol": "main", "tir.noalias": True})


def test_function_round_trips() -> None:
    """A function read back is structurally equal, with enumerations and attributes of their own types."""
    function = sample()
    read = load_json(save_json(function))
    assert_structural_equal(function, read)
    assert read.body.body.kind is ForKind.PARALLEL
    assert isinstance(read.attrs, DictAttrs) and read.attrs["tir.noalias"] is True
    buffer = read.buffer_map[read.params[0]]
    assert buffer.dtype == "float32" and buffer.shape[0] is read.body.body.extent


def test_module_round_trips() -> None:
    """A module keeps its functions, names and attributes."""
    module = IRModule({"main": sample(), "other": sample()}, attrs={"flag": 1})
    read = load_json(save_json(module))
    assert_structural_equal(module, read)
    assert [variable.name_hint for variable in read.get_global_vars()] == ["main", "other"]
    assert read.get_attr("flag") == 1


@pytest.mark.parametrize("source", [SourceName("model.py"), None])
def test_spans(source: SourceName | None) -> None:
    """A span by itself keeps its source and its places; one of no source prints, too."""
    span = Span(source, 1, 2, 3, 4)  # type: ignore[arg-type]
    assert load_json(save_json(span)) == span
    assert str(span) == ("model.py:1:3" if source else "?:1:3")
    with pytest.raises(SerializationError, match="two lines and two columns"):
        load_json(save_json(span).replace("1,2,3,4", "1,2"))


def test_sharing_survives() -> None:
    """What was one node is one node again, so the text of a graph is as long as the graph."""
    x = Var("x")
    doubled: PrimExpr = x
    for _ in range(100):
        doubled = doubled * doubled
    text = save_json(doubled)
    assert len(text) < 20_000
    read = load_json(text)
    assert read.a is read.b
    assert_structural_equal(doubled, read, map_free_vars=True)


def test_deep_expressions() -> None:
    """A chain of 20,000 nodes is written and read without recursion."""
    x, y = Var("x"), Var("y")
    total: PrimExpr = x
    for _ in range(20_000):
        total = total + y
    assert_structural_equal(total, load_json(save_json(total)), map_free_vars=True)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), -0.0, 0.1, 1e308])
def test_floats(value: float) -> None:
    """Every float comes back as it was."""
    assert_structural_equal(FloatImm("float64", value), load_json(save_json(FloatImm("float64", value))))


def test_containers_arrays_and_types() -> None:
    """Sequences, dictionaries, arrays and types are values too."""
    value = {"shape": (1, 2), "type": TensorType((3, 4), "int8"), "none": None, "text": "ä"}
    read = load_json(save_json(value))
    assert read == value
    array = np.arange(6, dtype="float16").reshape(2, 3)
    np.testing.assert_array_equal(load_json(save_json(array)), array)


def test_what_cannot_be_written() -> None:
    """A function of Python is not a value of a program."""
    with pytest.raises(SerializationError, match="cannot be written as JSON"):
        save_json({"f": print})


def document(*nodes: object, **changes: object) -> str:
    """A text of save_json with these entries."""
    return json.dumps(
        {"format": "tilewright-nodes", "version": 1, "root": 0, "nodes": list(nodes), **changes}
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[]", "not one that save_json wrote"),
        ("{}", "not one that save_json wrote"),
        ("[" * 100_000, "not JSON"),
        (document(version=2), "version 2"),
        (document(nodes=None), "no list of nodes"),
        (document(), "root 0 is not an entry"),
        (document({"value": 1}, root=True), "root True is not an entry"),
        (document({"kind": "ir.Nonsense", "fields": {}}), "no node class 'ir.Nonsense'"),
        (document({"kind": "ir.Add", "fields": {"a": 0}}), "has the fields"),
        (document({"op": "tir.nonsense"}), "not registered"),
        (document({"list": [0]}), "not an earlier entry"),
        (document({"list": [-1]}), "not an earlier entry"),
        (document({"dtype": "float7"}), "not a data type"),
        (document({"enum": "ForKind", "value": "SIDEWAYS"}), "SIDEWAYS"),
        (document({"strange": 1}), "its form is not known"),
        (document(5), "entry 0"),
        (
            document({"value": 1}, {"kind": "ir.Add", "fields": {"dtype": 0, "a": 0, "b": 0}}),
            "not a data type",
        ),
        (
            document(
                {"value": 1}, {"dtype": "int32"}, {"kind": "ir.Add", "fields": {"dtype": 1, "a": 0, "b": 0}}
            ),
            "where a node is expected",
        ),
        (document({"array": "!", "dtype": "int8", "shape": [1]}), "entry 0"),
        (document({"array": "AAAA", "dtype": "O", "shape": [1]}), "array of objects"),
    ],
)
def test_bad_texts(text: str, message: str) -> None:
    """A text that save_json did not write is refused with what is wrong and where."""
    with pytest.raises(SerializationError, match=message):
        load_json(text)


def test_reading_makes_frozen_nodes() -> None:
    """Nodes that were read are as frozen as others."""
    read = load_json(save_json(Store(Var("p", "handle"), 1.0, 0)))
    with pytest.raises(AttributeError):
        read.value = Evaluate(0)


def test_tensors_round_trip() -> None:
    """A constant's element type, shape and bits are kept; they stand as base64."""
    for dtype in ("float32", "float16", "int8", "uint64", "bool", "bfloat16"):
        value = ndarray.empty((2, 2), dtype).copyfrom(np.array([[0, 1], [1, 1]]))
        found = load_json(save_json(value))
        assert found.dtype == dtype and found.shape == (2, 2)
        assert found.numpy().tobytes() == value.numpy().tobytes()


def test_a_tensor_that_does_not_fit_its_shape_is_refused() -> None:
    """Too few bytes for the shape are an error of the text."""
    text = save_json(ndarray.array(np.zeros(4, "float32"))).replace('"shape":[4]', '"shape":[5]')
    with pytest.raises(SerializationError, match="entry 0 of the JSON text is wrong"):
        load_json(text)


def test_containers_and_targets_come_back_as_they_are() -> None:
    """Lists are Arrays and dictionaries Maps, at every depth; a function keeps its target."""
    x = Var("x")
    found = load_json(save_json({"list": [x, {"sum": x + 1}], "number": 2}))
    assert isinstance(found, Map) and isinstance(found["list"], Array) and isinstance(found["list"][1], Map)
    assert found["list"][1]["sum"].a is found["list"][0] and found["number"] == 2
    assert found.type_key == "Map" and found["list"].type_key == "Array"
    target = Target("llvm -mcpu=core-avx2", host="c")
    function = PrimFunc([], Evaluate(0)).with_attr("target", target)
    again = load_json(save_json(function)).attrs["target"]
    assert str(again) == str(target) and str(again.host) == str(target.host)


def test_inferred_types_are_kept() -> None:
    """A graph that is read back has its types, and the same text; without them it is as it was written by hand."""
    x = relay.var("x", shape=(2, 3))
    written = IRModule.from_expr(relay.Function([x], relay.nn.relu(x) + relay.const(1.0)))
    inferred = relay.transform.InferType()(written)
    read = load_json(save_json(inferred))
    assert str(read) == str(inferred)
    assert read["main"].body.checked_type == TensorType((2, 3), "float32")
    assert_structural_equal(relay.transform.InferType()(read), inferred)
    assert "types" not in json.loads(save_json(inferred["main"], with_types=False))
    with pytest.raises(ValueError, match="InferType"):
        _ = load_json(save_json(inferred["main"], with_types=False)).body.checked_type


@pytest.mark.parametrize("types", [[[0]], [[0, 0]], [["a", 1]], 5, [[0, 10_000]]])
def test_wrong_types_are_refused(types: object) -> None:
    """Pairs of an expression and a type, and nothing else."""
    document = json.loads(save_json(relay.var("x", shape=(2, 3))))
    document["types"] = types
    with pytest.raises(SerializationError, match="not an expression and its type"):
        load_json(json.dumps(document))
