"""Validation: beside the reference, beside ONNX Runtime, and the first operator that is wrong."""

import numpy as np
import pytest

from tilewright import relay
from tilewright.driver import tvmc
from tilewright.driver.tvmc import onnxruntime_peer, validation
from tilewright.driver.tvmc.compiler import make_settings
from tilewright.driver.tvmc.first_difference import first_difference, runnable_of
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.support.errors import TilewrightError


@pytest.fixture
def wrong_reference(monkeypatch):
    """Makes the reference of an operator wrong for the time of a test."""

    def spoil(name, change):
        operator = Op.get(name)
        right = operator.get_attr("FReference")
        wrong = (lambda attrs, *args: change(right(attrs, *args)), 10)
        monkeypatch.setitem(operator._attributes, "FReference", wrong)

    return spoil


def diamond():
    """Two branches that join: exp and tanh of one sum, added."""
    x = relay.var("x", shape=(4,))
    base = x + relay.const(np.float32(1))
    parts = relay.split(relay.tanh(base), 2, axis=0)
    body = relay.concatenate([parts[1], relay.exp(base), parts[0]], axis=0)
    return tvmc.TVMCModel(IRModule.from_expr(relay.Function([x], relay.nn.relu(body))), {})


X = {"x": np.float32([0.5, -0.25, 1.0, 2.0])}


def test_indices_of_given_inputs_are_checked():
    """Compiled code would read an element inside; validation says which index was meant."""
    table, index = relay.const(np.eye(4, dtype="float32")), relay.var("index", shape=(2,), dtype="int64")
    model = tvmc.TVMCModel(IRModule.from_expr(relay.Function([index], relay.take(table, index, axis=0))), {})
    settings = make_settings("llvm")
    runnable = runnable_of(settings.compile(model.mod, model.params))
    found = validation.validate(model, runnable, settings, [{"index": np.int64([3, 0])}])
    assert found.agrees
    with pytest.raises(TilewrightError, match="index 4 is out of range for axis 0"):
        validation.validate(model, runnable, settings, [{"index": np.int64([0, 4])}])


@pytest.mark.parametrize("executor", ["graph", "vm", "aot"])
def test_a_right_model_has_no_first_difference(executor):
    """Every operator agrees, and so do all outputs."""
    model, settings = diamond(), make_settings("llvm", executor=executor)
    assert first_difference(model, settings, X) is None
    runnable = runnable_of(settings.compile(model.mod, model.params))
    found = validation.validate(model, runnable, settings, [X])
    assert found.agrees and found.runs == 3 and found.notes == []


@pytest.mark.parametrize("name", ["tanh", "exp", "concatenate", "add"])
def test_the_first_wrong_operator_is_found(name, wrong_reference):
    """Whichever it is, on either branch, behind a tuple, first or last."""
    wrong_reference(name, lambda value: value * np.float32(1.5))
    for settings in (make_settings("llvm"), make_settings("c", executor="aot")):
        found = first_difference(diamond(), settings, X)
        assert found.operator == name
    assert found.relative == pytest.approx(1 / 3, rel=1e-3)


def test_a_package_that_is_another_model(small_onnx):
    """Where the model itself compiles to what it should, the package is to blame, and this is said."""
    model, settings = tvmc.load(small_onnx), make_settings("llvm")
    other = tvmc.load(small_onnx)
    other.params["bias"] = other.params["bias"].numpy() + 1
    runnable = runnable_of(settings.compile(other.mod, other.params))
    found = validation.validate(model, runnable, settings, random_inputs=1)
    assert not found.agrees and found.first is None
    assert "the package differs from its parts" in found.notes[0]
    assert found.as_json()["agrees"] is False


def test_without_onnx_runtime(small_onnx, monkeypatch):
    """Its absence is a note, not a failure."""
    model, settings = tvmc.load(small_onnx), make_settings("llvm")
    monkeypatch.setattr(validation, "is_installed", lambda: False)
    runnable = runnable_of(settings.compile(model.mod, model.params))
    found = validation.validate(model, runnable, settings, random_inputs=1, onnx_path=small_onnx)
    assert found.agrees and "pip install onnxruntime" in found.notes[0]


def test_beside_onnx_runtime(small_onnx, tmp_path):
    """It runs in a process of its own; what it cannot run is a reason, not an exception."""
    pytest.importorskip("onnxruntime")
    model, settings = tvmc.load(small_onnx), make_settings("llvm")
    runnable = runnable_of(settings.compile(model.mod, model.params))
    found = validation.validate(model, runnable, settings, random_inputs=1, onnx_path=small_onnx)
    assert [one.peer for one in found.comparisons] == ["reference executor"] * 2 + ["ONNX Runtime"] * 2
    assert found.agrees
    (tmp_path / "bad.onnx").write_bytes(b"bad")
    outcome = onnxruntime_peer.run_onnxruntime(str(tmp_path / "bad.onnx"), [X])
    assert outcome.failure and outcome.outputs == []
