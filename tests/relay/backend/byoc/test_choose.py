"""The faster of backend and compiled code is taken, and the report says what went where."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.driver.cli import main as command
from tilewright.driver.profile.graphs import kernel_graph, operator_graph
from tilewright.relay.backend.byoc import (
    choose,
    choose_fastest,
    json_compiler,
    partition_for,
    put_back,
    take_all,
)
from tilewright.relay.infer import infer_module
from tilewright.relay.op.contrib import BACKENDS, Backend, get_backend, register_backend

SHAPE = (64, 128)


class Timed(tvm.runtime.JSONRuntime):
    """Does nothing, quickly or slowly: only its time matters here."""

    backend = "test_timed"
    seconds = 0.0

    def compute(self, inputs: Any, outputs: Any) -> None:
        """Wait."""
        time.sleep(self.seconds)


def _takes(call: Any) -> str | None:
    return None if str(call.checked_type.dtype) == "float32" else "only float32"


register_backend(Backend("test_timed", list, {"erf": _takes, "exp": _takes}))
BACKENDS.pop("test_timed")


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Timed]]:
    """The backend, as long as a test runs."""
    monkeypatch.setitem(BACKENDS, "test_timed", Backend("test_timed", list, {"erf": _takes, "exp": _takes}))
    tvm.register_func("relay.ext.test_timed", json_compiler(Timed), override=True)
    yield Timed
    tvm.runtime.remove_global_func("relay.ext.test_timed")


def model() -> tvm.IRModule:
    """Two operators that the backend takes, and one that it does not."""
    x = relay.var("x", shape=SHAPE)
    return infer_module(
        tvm.IRModule.from_expr(relay.Function([x], relay.sum(relay.exp(relay.erf(x)), axis=1)))
    )


def test_the_faster_is_taken(timed: type[Timed], monkeypatch: pytest.MonkeyPatch) -> None:
    """A backend that takes longer is not used; one that takes no time is."""
    monkeypatch.setattr(timed, "seconds", 0.01)
    found = choose_fastest(model(), "test_timed")
    assert found.chosen == "compiled"
    assert [one.is_taken for one in found.parts] == [False]
    assert found.parts[0].reason == "not faster than compiled code"
    assert found.parts[0].operators == ("erf", "exp")
    assert not any(one.attrs.get("Compiler") for one in found.module.functions.values())
    slow = relay.const(np.zeros((512, 512), "float32"))
    x = relay.var("x", shape=(512, 512))
    body = relay.exp(relay.erf(x))
    for _ in range(20):
        body = relay.erf(body + slow)
    heavy = infer_module(tvm.IRModule.from_expr(relay.Function([x], body)))
    monkeypatch.setattr(timed, "seconds", 0.0)
    monkeypatch.setitem(BACKENDS["test_timed"].operators, "add", _takes)
    tvm.ir.register_op_attr("add", "target.test_timed", lambda call: True)
    found = choose_fastest(heavy, "test_timed")
    assert found.chosen == "test_timed" and found.parts[0].is_taken
    assert found.totals["test_timed"] < found.totals["compiled"]


def test_for_another_machine_nothing_is_measured(timed: type[Timed]) -> None:
    """Everything is taken then, and the report says why."""
    found = choose_fastest(model(), "test_timed", "llvm -mtriple=aarch64-unknown-linux-gnu")
    assert [one.is_taken for one in found.parts] == [True] and found.totals == {}
    assert "not measured: the code is for" in found.parts[0].reason


def test_report(timed: type[Timed]) -> None:
    """What was taken, and what was left and why."""
    found = take_all(model(), ["test_timed"])
    text = found.text()
    assert "tvmgen_default_test_timed_main_0 (test_timed): taken" in text
    assert "sum (1): test_timed has no sum" in text
    assert json.loads(json.dumps(found.as_json()))["refused"][0]["operator"] == "sum"


def test_parts_are_put_back(timed: type[Timed]) -> None:
    """The module is what it was before, and the other parts stay."""
    given = model()
    module = partition_for(given, "test_timed")
    (symbol,) = [name.name_hint for name in module.get_global_vars() if name.name_hint != "main"]
    assert tvm.ir.structural_equal(put_back(module, [symbol])["main"], given["main"])
    assert tvm.ir.structural_equal(put_back(module, ["another"])["main"], module["main"])


def test_the_drawing_names_backends(timed: type[Timed]) -> None:
    """Operators before fusion and kernels after it have the backend that computes them."""
    module = infer_module(partition_for(model(), "test_timed"))
    before = operator_graph(module["main"], {}, module)
    assert [(node.label, node.backend) for node in before.nodes] == [
        ("x", ""),
        ("erf", "test_timed"),
        ("exp", "test_timed"),
        ("sum", ""),
    ]
    assert before.edges == ((0, 1), (1, 2), (2, 3))
    factory = relay.build(module, "llvm")
    after = kernel_graph(factory.get_graph_json(), frozenset(factory.get_params()))
    assert [node.backend for node in after.nodes] == ["", "test_timed", ""]


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """``tilewright compile --target "llvm, onednn" --explain`` says what went where."""
    missing = get_backend("onednn").why_missing()
    if missing is not None:
        pytest.skip(missing)
    monkeypatch.chdir(tmp_path)
    x = relay.var("x", shape=(1, 4, 8, 8))
    weight = relay.const(np.ones((8, 4, 3, 3), "float32"))
    body = relay.erf(relay.nn.relu(relay.nn.conv2d(x, weight, padding=(1, 1))))
    made = relay.backend.onnx_export.to_onnx(tvm.IRModule.from_expr(relay.Function([x], body)), {}, "m", 17)
    Path("m.onnx").write_bytes(made.SerializeToString())
    arguments = ["compile", "m.onnx", "-o", "m.tar", "--explain", "--target"]
    assert command([*arguments, "llvm, onednn -choose=0", "--validate"]) == 0
    text = capsys.readouterr().out
    assert "tvmgen_default_onednn_main_0 (onednn): taken" in text and "onednn has no erf" in text
    assert command([*arguments, "llvm, onednn", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["partition"]
    assert found["backends"] == ["onednn"] and found["parts"][0]["compiled_seconds"] > 0
    assert command([*arguments, "llvm, onednn -wrong=1"]) != 0
    assert "the backend onednn has no option 'wrong'" in capsys.readouterr().err


def test_layers_of_one_structure_are_timed_once(timed: type[Timed], monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights make no difference: two models are compiled for three layers, one by each side."""
    built = []
    whole = choose.Contestant.__init__

    def count(self: Any, *args: Any, **options: Any) -> None:
        built.append(self)
        whole(self, *args, **options)

    monkeypatch.setattr(choose.Contestant, "__init__", count)
    monkeypatch.setattr(timed, "seconds", 0.01)
    x = relay.var("x", shape=SHAPE)
    body = x
    for number in range(3):
        body = relay.sin(relay.erf(body * relay.const(np.full(SHAPE, number, "float32"))))
    found = choose_fastest(infer_module(tvm.IRModule.from_expr(relay.Function([x], body))), "test_timed")
    assert len(found.parts) == 3 and len(built) == 2
