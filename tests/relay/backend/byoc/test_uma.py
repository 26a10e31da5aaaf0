"""A backend in one class: what it declares, what becomes of it, and what is said when it is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay, strategy, te
from tilewright.contrib.graph_executor import GraphModule
from tilewright.relay.backend.byoc import choose_fastest, take_all
from tilewright.relay.backend.byoc.uma import PassPhase, UMABackend
from tilewright.relay.dataflow_pattern import is_constant, is_op, wildcard
from tilewright.relay.op.contrib import BACKENDS
from tilewright.support.errors import TilewrightError
from tilewright.target.kind import KINDS

NAME = "test_uma"
GENERATOR = np.random.default_rng(5)
X, WEIGHT, BIAS = (GENERATOR.standard_normal(shape).astype("float32") for shape in [(3, 8), (4, 8), (4,)])


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    """A kind of target is registered once in a process; tests register theirs anew."""
    yield
    KINDS.pop(NAME, None)
    BACKENDS.pop(NAME, None)
    strategy.forget("nn.dense", NAME)


def dense_strategy(attrs: Any, inputs: Any, out_type: Any, target: Any) -> Any:
    """A dense layer that reads its weights once more than it must, under a name of its own."""

    def compute(attrs: Any, inputs: Any, out_type: Any) -> list[te.Tensor]:
        data, weight = inputs
        k = te.reduce_axis((0, data.shape[1]), "k")
        return [
            te.compute(
                (data.shape[0], weight.shape[0]),
                lambda i, j: te.sum(data[i, k] * weight[j, k], axis=k),
                name="my_dense",
            )
        ]

    strategy = relay.op.OpStrategy()
    strategy.add_implementation(
        compute, lambda attrs, outs, target: te.create_schedule([one.op for one in outs]), "my_dense", 11
    )
    return strategy


def small(root: Any) -> bool | str:
    """At most four units."""
    units = int(root.checked_type.shape[1])
    return True if units <= 4 else f"{units} units are more than four"


class Backend(UMABackend):
    """Dense layers with a bias, in C."""

    def __init__(self) -> None:
        super().__init__()
        self._register_target_attr("lanes", 4)
        dense = is_op("nn.dense")(wildcard(), is_constant())
        self._register_pattern("dense", is_op("nn.bias_add")(dense, is_constant()), small)
        self._register_operator_strategy("nn.dense", dense_strategy)
        self._register_codegen("c", includes=lambda: "/* made by test_uma */")

    @property
    def target_name(self) -> str:
        return NAME


def network(units: int = 4) -> tvm.IRModule:
    """A dense layer with a bias and an activation."""
    x = relay.var("x", shape=X.shape)
    weight, bias = np.resize(WEIGHT, (units, 8)), np.resize(BIAS, units)
    made = relay.nn.bias_add(relay.nn.dense(x, relay.const(weight)), relay.const(bias))
    return tvm.IRModule.from_expr(relay.nn.relu(made))


def run(library: Any) -> np.ndarray:
    """The output for X."""
    executor = GraphModule(library["default"](tvm.cpu()))
    executor.run(x=X)
    return executor.get_output(0).numpy()


EXPECTED = np.maximum(X @ WEIGHT.T + BIAS, 0)


def test_a_backend_of_declarations(tmp_path: Path) -> None:
    """Patterns, a strategy and C: the artefact has the code, and another load of it runs."""
    backend = Backend()
    backend.register()
    assert tvm.target.Target(f"{NAME} -lanes=8").attrs["lanes"] == 8
    assert [name for name, *_ in relay.op.contrib.get_pattern_table(NAME)] == [f"{NAME}.dense"]
    module = backend.partition(network())
    (function,) = (one for one in module.functions.values() if one.attrs.get("Compiler") == NAME)
    assert len(function.params) == 3, "the constants are arguments"
    library = relay.build(module, "llvm")
    (source,) = (one.get_source() for one in library.lib.imported_modules if one.type_key == "c")
    assert source.startswith("/* made by test_uma */")
    np.testing.assert_allclose(run(library), EXPECTED, rtol=1e-5)
    library.export_library(str(tmp_path / "model.so"))
    np.testing.assert_allclose(run(tvm.runtime.load_module(str(tmp_path / "model.so"))), EXPECTED, rtol=1e-5)


def test_the_strategy_of_the_highest_level_counts() -> None:
    """Whatever the order in which they were declared."""
    backend = Backend()
    backend._register_operator_strategy("nn.dense", raising, plevel=5)
    backend.register()
    np.testing.assert_allclose(run(relay.build(backend.partition(network()), "llvm")), EXPECTED, rtol=1e-5)


def test_refusals_have_reasons() -> None:
    """What a predicate refuses stays where it was, and the reason is kept."""
    backend = Backend()
    backend.register()
    module = backend.partition(network(units=5))
    assert len(module.functions) == 1
    assert backend.explain() == "dense: 5 units are more than four"


def test_passes_of_a_backend_run_in_their_phases() -> None:
    """Over the graph before and after partitioning, over the loops in order."""
    seen: list[str] = []

    def noting(name: str) -> Callable[[tvm.IRModule], tvm.IRModule]:
        def note(module: tvm.IRModule) -> tvm.IRModule:
            seen.append(f"{name}: {len(module.functions)}")
            return module

        return note

    backend = Backend()
    backend._register_tir_pass(PassPhase.TIR_PHASE_1, noting("loops 1"))
    backend._register_tir_pass(PassPhase.TIR_PHASE_0, noting("loops 0"))
    backend._register_relay_pass(PassPhase.POST_PARTITIONING_0, noting("after"))
    backend._register_relay_pass(PassPhase.PRE_PARTITIONING, noting("before"))
    backend.register()
    relay.build(backend.partition(network()), "llvm")
    assert seen == ["before: 1", "after: 2", "loops 0: 1", "loops 1: 1"]


def test_machine_code_instead_of_c() -> None:
    """The form of the code is the backend's choice, and so is what the weights are: here parameters of the model."""
    backend = Backend()
    backend._register_codegen("llvm")
    backend.register()
    x, weight, bias = (
        relay.var(name, shape=value.shape) for name, value in (("x", X), ("w", WEIGHT), ("b", BIAS))
    )
    body = relay.nn.relu(relay.nn.bias_add(relay.nn.dense(x, weight), bias))
    module = backend.partition(tvm.IRModule.from_expr(body), {"w": WEIGHT, "b": BIAS})
    assert len(module.functions) == 2
    np.testing.assert_allclose(run(relay.build(module, "llvm")), EXPECTED, rtol=1e-5)


def raising(*_: Any) -> Any:
    """What no step should do."""
    raise KeyError("left out")


@pytest.mark.parametrize(
    ("step", "wrong", "said"),
    [
        (
            "patterns",
            lambda: [("dense", "nn.dense")],
            r"patterns gives entries .*not \('dense', 'nn.dense'\)",
        ),
        ("patterns", raising, "patterns failed: KeyError: 'left out'"),
        ("patterns", lambda: None, "patterns failed: TypeError"),
        ("strategies", lambda: ["nn.dense"], "strategies gives pairs"),
        ("strategies", raising, "strategies failed: KeyError"),
        ("strategies", lambda: [("nn.dense", raising)], "relay_to_tir failed: KeyError: 'left out'"),
        ("strategies", lambda: [("nn.dense", lambda *given: None)], "relay_to_tir failed"),
        ("register_target", lambda: None, "did not register a kind of target"),
        ("register_target", raising, "register_target failed: KeyError"),
        ("relay_to_relay", lambda mod: None, "relay_to_relay gave None, not a module"),
        ("relay_to_relay", raising, "relay_to_relay failed: KeyError"),
        ("relay_to_tir", lambda mod: "loops", "relay_to_tir gave 'loops', not a module"),
        ("relay_to_tir", raising, "relay_to_tir failed: KeyError"),
        ("relay_to_tir", lambda mod: tvm.IRModule(), "did not return a module with"),
        ("relay_to_tir", lambda mod: mod, "left .* a Function"),
        ("tir_to_runtime", lambda mod, target: b"code", "tir_to_runtime gave b'code', not a runtime module"),
        ("tir_to_runtime", raising, "tir_to_runtime failed: KeyError"),
        (
            "tir_to_runtime",
            lambda mod, target: relay.backend.byoc.CSourceModule("int other;", ["other"]),
            "has no function",
        ),
    ],
)
def test_hostile_steps(step: str, wrong: Callable[..., Any], said: str) -> None:
    """Whatever a step does wrong, the error names the backend and says what was wrong."""
    backend = Backend()
    setattr(backend, step, wrong)

    def use() -> None:
        backend.register()
        relay.build(backend.partition(network()), "llvm")

    with pytest.raises(TilewrightError, match=f"(?s){NAME}.*{said}"):
        use()


def test_hostile_declarations() -> None:
    """Refused where they are made, or where they are used."""
    backend = Backend()
    for declare, said in [
        (
            lambda: backend._register_operator_strategy("nn.dence", dense_strategy),
            "operator 'nn.dence' is not registered",
        ),
        (lambda: backend._register_codegen("fortran"), "as c or llvm, not 'fortran'"),
        (lambda: backend._register_target_attr("speed", 1.5), "a string, an integer or a bool, not 1.5"),
        (lambda: backend._register_relay_pass(PassPhase.TIR_PHASE_0, raising), "for PRE_PARTITIONING"),
        (lambda: backend._register_tir_pass(PassPhase.TIR_PHASE_0, None), "from module to module, not None"),
        (lambda: backend.partition(network()), r"register the backend first"),
    ]:
        with pytest.raises(TilewrightError, match=f"the backend '{NAME}': .*{said}"):
            declare()
    backend._register_relay_pass(PassPhase.PRE_PARTITIONING, lambda mod: 7)
    backend.register()
    with pytest.raises(
        TilewrightError, match=f"'{NAME}': the pass .* of PRE_PARTITIONING gave 7, not a module"
    ):
        backend.partition(network())
    with pytest.raises(TilewrightError, match="a backend is registered once"):
        backend.register()


@pytest.mark.parametrize(("given", "said"), [(1, "gave 1: it is True, False"), (raising, "KeyError")])
def test_hostile_predicates(given: Any, said: str) -> None:
    """A predicate is asked during partitioning."""
    backend = Backend()
    backend._patterns = []
    backend._register_pattern(
        "dense", is_op("nn.dense")(wildcard(), wildcard()), given if callable(given) else lambda root: given
    )
    backend.register()
    with pytest.raises(TilewrightError, match=f"'{NAME}': the predicate of dense .*{said}"):
        backend.partition(network())


def two_layers() -> tvm.IRModule:
    """A layer of four units, which the backend takes, and one of five, which its check refuses."""
    x = relay.var("x", shape=X.shape)
    made = relay.nn.relu(relay.nn.bias_add(relay.nn.dense(x, relay.const(WEIGHT)), relay.const(BIAS)))
    weight, bias = np.ones((5, 4), "float32"), np.zeros(5, "float32")
    made = relay.nn.bias_add(relay.nn.dense(made, relay.const(weight)), relay.const(bias))
    return tvm.IRModule.from_expr(relay.tanh(made))


def test_the_chooser_knows_the_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    """It times the parts as those of any other backend; a simulator is not timed, and takes what its checks accept."""
    Backend().register()
    expected = run(relay.build(two_layers(), "llvm"))
    taken = take_all(two_layers(), [NAME], mod_name="m")
    assert [(one.symbol, one.operators) for one in taken.parts] == [
        (f"tvmgen_m_{NAME}_main_0", ("nn.dense", "nn.bias_add"))
    ]
    reasons = {one.operator: (one.count, one.reasons) for one in taken.refused}
    assert reasons["nn.dense"] == (1, (f"{NAME}: 5 units are more than four",))
    assert reasons["tanh"] == (1, (f"{NAME}: no pattern of {NAME} takes tanh here",))
    np.testing.assert_allclose(run(relay.build(taken.module, "llvm")), expected, rtol=1e-5)
    (part,) = choose_fastest(two_layers(), [NAME]).parts
    assert part.backend == NAME and part.seconds is not None and part.compiled_seconds is not None
    monkeypatch.setattr(BACKENDS[NAME], "is_timed", False)
    found = choose_fastest(two_layers(), [NAME])
    assert [one.is_taken for one in found.parts] == [True] and found.chosen == NAME
    assert "its time here is a simulator's" in found.parts[0].reason
    np.testing.assert_allclose(run(relay.build(found.module, "llvm")), expected, rtol=1e-5)


def test_names_of_other_backends_are_refused() -> None:
    """A backend cannot take the place of one that is there."""
    backend = Backend()
    type(backend).target_name, kept = property(lambda self: "openblas"), type(backend).target_name
    try:
        with pytest.raises(TilewrightError, match="'openblas': there is another backend of this name"):
            backend.register()
    finally:
        type(backend).target_name = kept
