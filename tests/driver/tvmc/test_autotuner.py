"""``tvmc tune`` with TVM's options and functions."""

import argparse

import pytest

from tilewright import auto_scheduler, autotvm
from tilewright.driver import tvmc
from tilewright.driver.tvmc import TVMCException, autotuner


@pytest.fixture(scope="module")
def model(small_onnx):
    """A small model with a product."""
    return tvmc.load(small_onnx)


def test_tasks_of_a_model(model):
    """AutoTVM's, and AutoScheduler's with how often each is called."""
    tasks = autotuner.autotvm_get_tuning_tasks(model.mod, model.params, "llvm")
    assert tasks and all(isinstance(task, autotvm.task.Task) for task in tasks)
    found, weights = autotuner.autoscheduler_get_tuning_tasks(model.mod, model.params, "llvm")
    assert found and len(found) == len(weights)
    assert all(isinstance(task, auto_scheduler.SearchTask) for task in found)


@pytest.mark.parametrize("tuner", ["random", "gridsearch"])
def test_tune_writes_records_that_compile_applies(model, tuner, tmp_path):
    """With AutoTVM; a second search starts from the first one's records."""
    log = str(tmp_path / "records.log")
    assert tvmc.tune(model, "llvm", tuning_records=log, tuner=tuner, trials=2, number=1) == log
    with autotvm.apply_history_best(log) as best:
        assert best.best_by_targetkey
    if tuner == "random":
        again = str(tmp_path / "again.log")
        tvmc.tune(model, "llvm", tuning_records=again, prior_records=log, tuner="ga", trials=1, number=1)
        package = tvmc.compile(model, "llvm", tuning_records=log, output_format="tar")
        assert package.executor_type == "graph"


def test_tune_with_auto_scheduler(model, tmp_path):
    """Its records can be applied too."""
    log = str(tmp_path / "states.json")
    hardware = auto_scheduler.HardwareParams(num_cores=2, target="llvm")
    tvmc.tune(
        model,
        "llvm",
        tuning_records=log,
        enable_autoscheduler=True,
        trials=2,
        number=1,
        hardware_params=hardware,
    )
    assert list(auto_scheduler.load_records(log))
    assert tvmc.compile(model, "llvm", tuning_records=log, output_format="tar").executor_type == "graph"


def test_mistakes_are_told(model, tmp_path):
    """An unknown tuner, a tracker without a key, records that are not there."""
    tasks = autotuner.autotvm_get_tuning_tasks(model.mod, model.params, "llvm")
    option = autotvm.measure_option(autotvm.LocalBuilder(), autotvm.LocalRunner())
    with pytest.raises(TVMCException, match="the tuners are ga, .*, not 'gridserch' .*'gridsearch'"):
        autotuner.tune_tasks(tasks, str(tmp_path / "log"), option, "gridserch", 1)
    with pytest.raises(TVMCException, match="give rpc_key, or --rpc-key"):
        tvmc.tune(model, "llvm", tuning_records=str(tmp_path / "log"), hostname="127.0.0.1", trials=1)
    with pytest.raises(TVMCException, match="there is no file gone.log"):
        tvmc.tune(model, "llvm", prior_records="gone.log", trials=1)


def test_no_tasks_are_no_error(tmp_path, caplog):
    """There is a line about it."""
    option = autotvm.measure_option(autotvm.LocalBuilder(), autotvm.LocalRunner())
    autotuner.tune_tasks([], str(tmp_path / "log"), option, "ga", 1, 1)
    assert "no tasks" in caplog.text


def test_the_command_passes_its_options_on(small_onnx, tmp_path, monkeypatch):
    """Those of TVM, the tracker's address included."""
    made = argparse.ArgumentParser()
    autotuner.add_tune_parser(made.add_subparsers())
    given = {}
    monkeypatch.setattr(autotuner, "tune_model", lambda *_, **options: given.update(options))
    log = str(tmp_path / "log")
    arguments = made.parse_args(
        ["tune", small_onnx, "-o", log, "--trials", "7", "--tuner", "xgb_knob", "--min-repeat-ms", "5"]
        + [
            "--rpc-tracker",
            "10.0.0.1:9999",
            "--rpc-key",
            "board",
            "--num-cores",
            "3",
            "--enable-autoscheduler",
        ]
    )
    assert arguments.func(arguments) == 0
    assert (given["hostname"], given["port"], given["rpc_key"]) == ("10.0.0.1", 9999, "board")
    assert (given["trials"], given["tuner"], given["min_repeat_ms"]) == (7, "xgb_knob", 5)
    assert given["tuning_records"] == log and given["enable_autoscheduler"]
    assert given["hardware_params"].num_cores == 3
