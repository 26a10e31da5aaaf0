"""Real candidates of a user's own template: built, measured, tuned, and failing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import autotvm, te
from tilewright.autotvm.measure import MeasureErrorNo, MeasureInput, create_measure_batch
from tilewright.support.errors import RPCError, TilewrightError


@autotvm.template("tests/product")
def product(size: int, mode: str) -> Any:
    """A product whose only knob is the length of its vectors; some modes fail in different ways."""
    a, b = (te.placeholder((size, size), name=name) for name in "ab")
    k = te.reduce_axis((0, size), name="k")
    c = te.compute((size, size), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
    s = te.create_schedule(c.op)
    cfg = autotvm.get_config()
    i, j = s[c].op.axis
    cfg.define_split("tile", j, policy="candidate", num_outputs=2, candidate=[[-1, 1], [-1, 16], [-1, 32]])
    outer, inner = cfg["tile"].apply(s, c, j)
    if mode == "raises" and cfg["tile"].size[-1] > 1:
        raise ValueError("a mistake in the template")
    if mode == "reports" and cfg["tile"].size[-1] > 1:
        cfg.raise_error("too wide")
    s[c].reorder(i, outer, s[c].op.reduce_axis[0], inner)
    if cfg["tile"].size[-1] > 1:
        s[c].vectorize(inner)
    return s, [a, b, c]


def _option(**limits: Any) -> dict[str, Any]:
    return autotvm.measure_option(
        autotvm.LocalBuilder(timeout=120, n_parallel=2),
        autotvm.LocalRunner(number=2, repeat=2, timeout=120, cooldown_interval=0, **limits),
    )


def _measured(mode: str) -> list[Any]:
    task = autotvm.task.create("tests/product", args=(32, mode), target="llvm")
    inputs = [MeasureInput(task.target, task, task.config_space.get(index)) for index in range(3)]
    return create_measure_batch(task, _option())(inputs)


def test_errors_of_templates_are_results() -> None:
    """What a template raises or reports fails that candidate only."""
    for mode, message in (("raises", "a mistake in the template"), ("reports", "too wide")):
        results = _measured(mode)
        assert [result.error_no for result in results] == [0, 1, 1]
        assert results[1].error_no == MeasureErrorNo.INSTANTIATION_ERROR
        assert message in str(results[1].costs[0])
        assert len(results[0].costs) == 2 and min(results[0].costs) > 0


def test_a_tuned_product_is_faster_than_its_default(tmp_path: Path) -> None:
    """A scalar loop is the first configuration; tuning ends with vectors, and the build with records uses them."""
    log = tmp_path / "product.log"
    task = autotvm.task.create("tests/product", args=(96, ""), target="llvm")
    tuner = autotvm.tuner.GridSearchTuner(task)
    costs = []
    tuner.tune(
        3,
        _option(),
        callbacks=[
            autotvm.callback.log_to_file(log),
            lambda _, inputs, results: costs.extend(min(result.costs) for result in results),
        ],
    )
    assert min(costs[1:]) < costs[0]
    with autotvm.apply_history_best(log), tvm.target.Target("llvm"):
        schedule, tensors = product(96, "")
    values = [np.random.default_rng(number).standard_normal((96, 96)).astype("float32") for number in (0, 1)]
    result = tvm.nd.empty((96, 96))
    tvm.build(schedule, tensors, "llvm")(*map(tvm.nd.array, values), result)
    np.testing.assert_allclose(result.numpy(), values[0] @ values[1], rtol=1e-4, atol=1e-4)
    assert "vectorized" in str(tvm.lower(schedule, tensors, simple_mode=True)) or tuner.best_config.index > 0


def test_bad_options_are_refused() -> None:
    """Names that mean nothing, and trackers that are not there."""
    with pytest.raises(TilewrightError, match="unknown runner 'cloud'"):
        autotvm.measure_option("local", "cloud")
    with pytest.raises(TilewrightError, match="unknown build_func"):
        autotvm.LocalBuilder(build_func="fast")
    with pytest.raises(RPCError, match="no tracker is named"):
        autotvm.measure.request_remote("pi")
