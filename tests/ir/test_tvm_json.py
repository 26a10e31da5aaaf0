"""JSON that TVM wrote."""

import json
from typing import Any

import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.ir.tvm_json import TvmJsonError


def _load(*nodes: dict[str, Any], root: int = 1) -> Any:
    return tvm.ir.load_json(
        json.dumps({"root": root, "nodes": [{"type_key": ""}, *nodes], "b64ndarrays": []})
    )


def test_types_and_variables() -> None:
    """Names of TVM 0.6 and 0.8; numbers of nodes and literals are told apart by the constructor."""
    name = {"type_key": "Variable", "attrs": {"dtype": "int32", "name": "in0"}}
    old = {"type_key": "relay.TypeVar", "attrs": {"kind": "0", "span": "0", "var": "2"}}
    assert _load(old, name).name_hint == "in0"
    made = _load(
        {"type_key": "relay.Var", "attrs": {"span": "0", "type_annotation": "3", "vid": "2"}},
        {"type_key": "relay.Id", "attrs": {"name_hint": "x"}},
        {"type_key": "relay.TensorType", "attrs": {"dtype": "float32", "shape": "4", "span": "0"}},
        {"type_key": "Array", "data": [5, 5]},
        {"type_key": "IntImm", "attrs": {"dtype": "int32", "value": "16", "span": "0"}},
    )
    assert isinstance(made, relay.Var) and made.name_hint == "x"
    assert made.type_annotation == relay.TensorType((16, 16), "float32")


def test_expressions_share_and_bad_texts_are_refused() -> None:
    """A variable that two nodes name is one; a class that is not known and a cycle are errors."""
    add = {"type_key": "Add", "attrs": {"a": "2", "b": "2", "dtype": "int32", "span": "0"}}
    variable = {"type_key": "tir.Var", "attrs": {"dtype": "int32", "name": "7", "type_annotation": "0"}}
    made = _load(add, variable)
    assert made.a is made.b and made.a.name == "7"
    assert _load({"type_key": "relay.Op", "global_key": "nn.conv2d"}) is relay.op.get("nn.conv2d")
    with pytest.raises(TvmJsonError, match="no class of nodes 'relay.Nothing'"):
        _load({"type_key": "relay.Nothing", "attrs": {"a": "0"}})
    with pytest.raises(TvmJsonError, match="contains itself"):
        _load({"type_key": "Array", "data": [1]})
