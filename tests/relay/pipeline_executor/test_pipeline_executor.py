"""Models in stages: how they are connected, what they compute, and that they work at the same time."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.contrib import pipeline_executor
from tilewright.relay.pipeline_executor import PipelineConfig, PipelineModule, build
from tilewright.support.errors import TilewrightError

SHAPE = (3, 3)


def stage(outputs: int, *names: str) -> tvm.IRModule:
    """A module that gives the sum of its inputs, plus one, plus two…"""
    given = [relay.var(name, shape=SHAPE) for name in names]
    total = given[0]
    for one in given[1:]:
        total = relay.add(total, one)
    made = [relay.add(total, relay.const(float(number + 1))) for number in range(outputs)]
    return tvm.IRModule.from_expr(relay.Function(given, relay.Tuple(made) if outputs > 1 else made[0]))


def connected() -> tuple[PipelineConfig, list[tvm.IRModule]]:
    """Three stages: the first feeds both others and an output, the second the third."""
    first, second, third = modules = stage(3, "a"), stage(1, "a", "b"), stage(1, "a", "b")
    config = PipelineConfig()
    config["input"]["x"].connect(config[first]["input"]["a"])
    config["input"]["y"].connect(config[second]["input"]["b"])
    config[first]["output"][0].connect(config[second]["input"]["a"])
    config[first]["output"][1].connect(config[third]["input"]["a"])
    config[second]["output"][0].connect(config[third]["input"]["b"])
    config[first]["output"][2].connect(config["output"]["0"])
    config[third]["output"][0].connect(config["output"]["1"])
    return config, list(modules)


def expected(x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    """What the three stages compute."""
    return [x + 3, (x + 2) + (x + 1 + y + 1) + 1]


def test_many_inputs_on_their_way(tmp_path: Path) -> None:
    """Runs are started without waiting, and their outputs come in order; so do those of a stored pipeline."""
    config, _ = connected()
    factory = build(config)
    loaded = PipelineModule.load_library(factory.export_library(tmp_path))
    for module in (PipelineModule(factory), loaded):
        assert module.num_outputs == 2 and module.input_names() == ["x", "y"]
        runs = [(np.full(SHAPE, i, "float32"), np.full(SHAPE, 10 * i, "float32")) for i in range(20)]
        for x, y in runs:
            module.run(x=x, y=y)
        assert module.num_executing_pipeline == 20
        for x, y in runs:
            for found, wanted in zip(module.get_output(timeout=60), expected(x, y), strict=True):
                np.testing.assert_array_equal(found.numpy(), wanted)
        module.stop()


def test_the_configuration_as_data() -> None:
    """Numbers follow the connections, whatever the order in which the stages were named."""
    config, (first, second, third) = connected()
    config[second].target, config[second].dev = "llvm", tvm.cpu(0)
    made = config.get_config()
    assert [config.get_mod_idx(one) for one in (first, second, third)] == [0, 1, 2]
    assert made[first]["pipeline"]["output"][0] == {
        "output_idx": 0,
        "dependencies": [{"mod_idx": 1, "input_name": "a"}],
    }
    assert made[third]["pipeline"] == {
        "mod_idx": 2,
        "output": [{"output_idx": 0, "dependencies": [{"global_output_index": 1}]}],
    }
    assert made[second]["target"] == "llvm"
    module = PipelineModule(build(made))
    assert module.input_names() == ["a", "b"], "without names of the pipeline's own, those of the stages"


def test_stages_work_at_the_same_time() -> None:
    """Two stages that wait for each other's call end only if both run at once."""
    meeting = threading.Barrier(2, timeout=60)
    config = PipelineConfig()
    modules = [stage(1, "a"), stage(1, "a")]
    config["input"]["x"].connect(config[modules[0]]["input"]["a"])
    config[modules[0]]["output"][0].connect(config[modules[1]]["input"]["a"])
    config[modules[1]]["output"][0].connect(config["output"]["0"])
    module = PipelineModule(build(config))
    for number, executor in enumerate(module._executors):

        def run(number: int = number, real: object = executor.run, calls: list[int] = []) -> None:  # noqa: B006
            calls.append(number)
            # The first stage's second input meets the second stage's first.
            if calls.count(number) == 2 - number:
                meeting.wait()
            real()  # type: ignore[operator]

        executor.run = run  # type: ignore[method-assign]
    for value in (1, 2):
        module.run(x=np.full(SHAPE, value, "float32"))
    assert [module.get_output(timeout=60)[0].numpy()[0, 0] for _ in range(2)] == [3, 4]
    module.stop()


def test_wrong_connections() -> None:
    """Each is an error that says what was wrong, and leaves the configuration as it was."""
    config, (first, second, third) = connected()
    for connect, said in [
        (lambda: config[first]["output"][9], "no output 9; it has 3"),
        (lambda: config[first]["input"]["q"], "no input 'q'; its inputs are a"),
        (lambda: config["output"]["last"], "'last' is not a number"),
        (lambda: config[third]["output"][0].connect(config[first]["input"]["a"]), "connected to input x"),
        (lambda: config[first]["output"][0].connect(config[first]["input"]["a"]), "is connected to"),
        (lambda: config[first]["input"]["a"].connect(config[second]["input"]["a"]), "gives no values"),
        (lambda: config[first]["output"][0].connect(config["input"]["x"]), "takes no values"),
        (lambda: config["output"]["0"].connect(config[first]["output"][0]), "gives no values"),
        (lambda: config["input"]["x"].connect(config["output"]["5"]), "no stage between them"),
        (lambda: config[first]["output"][0].connect(7), "not 7"),
    ]:
        with pytest.raises(TilewrightError, match=said):
            connect()
    ring = PipelineConfig()
    ring[first]["output"][0].connect(ring[second]["input"]["a"])
    with pytest.raises(TilewrightError, match="form a cycle"):
        ring[second]["output"][0].connect(ring[first]["input"]["a"])
    assert ring[first]["input"]["a"].source is None


def test_wrong_use(tmp_path: Path) -> None:
    """Missing inputs, outputs of no run, a stage that fails, files that are no pipeline."""
    config, _ = connected()
    module = PipelineModule(build(config))
    with pytest.raises(TilewrightError, match="have no value: x, y"):
        module.run()
    with pytest.raises(TilewrightError, match="no input 'z'; it has x, y"):
        module.set_input("z", 1)
    with pytest.raises(TilewrightError, match="call run first"):
        module.get_output()
    module.run(x=np.zeros((2, 2), "float32"), y=np.zeros(SHAPE, "float32"))
    with pytest.raises(TilewrightError, match="the pipeline failed"):
        module.get_output(timeout=60)
    module.run(x=np.zeros(SHAPE, "float32"))
    np.testing.assert_array_equal(module.get_output(timeout=60)[0].numpy(), 3)
    module.stop()
    (tmp_path / "other.json").write_text("[]")
    with pytest.raises(TilewrightError, match=r"other\.json is not a stored pipeline"):
        PipelineModule.load_library(tmp_path / "other.json")
    with pytest.raises(TilewrightError, match="at least one stage"):
        build({})


def test_ends_of_the_pipeline_by_tvms_names() -> None:
    """``pipe_input`` and ``pipe_output`` are what the configuration has under "input" and "output"; an output has a
    number, as a number or as text."""
    assert pipeline_executor.pipeline_executor_enabled() is True
    module = stage(1, "a")
    config = pipeline_executor.PipelineConfig()
    config.pipe_input("x").connect(config[module]["input"]["a"])
    config[module]["output"][0].connect(config.pipe_output(0))
    assert config.pipe_input("x") is config["input"]["x"]
    assert config.pipe_output("0") is config.pipe_output(0) is config["output"]["0"]
    assert repr(config.pipe_output(0)) == "output 0 of the pipeline"
    (described,) = config.get_config().values()
    assert described["pipeline"]["output"] == [
        {"output_idx": 0, "dependencies": [{"global_output_index": 0}]}
    ]
    made = PipelineModule(build(config))
    data = np.full(SHAPE, 3, "float32")
    made.run(x=data)
    np.testing.assert_array_equal(made.get_output(timeout=60)[0].numpy(), data + 1)
    with pytest.raises(TilewrightError, match="'last' is not a number"):
        config.pipe_output("last")
