"""The two steps of PyTorch's backend: tune a module, compile it with what was found."""

from pathlib import Path

import numpy as np
import pytest
from tests.auto_scheduler.test_relay_integration import two_products

import tilewright as tvm
from tilewright import meta_schedule
from tilewright.support.errors import TilewrightError


def test_tune_and_compile(tmp_path: Path) -> None:
    """A few candidates of a small model; it computes what it did. A second call goes on from the records."""
    mod, params = two_products()
    target = f"llvm -num-cores={meta_schedule.utils.cpu_count(logical=False)}"
    database = meta_schedule.relay_integration.tune_relay(
        mod=mod,
        target=target,
        work_dir=str(tmp_path),
        max_trials_global=2,
        num_trials_per_iter=1,
        params=params,
        strategy="replay-func",
        opt_level=3,
    )
    assert database.path.read_text().count('"r":') >= 2
    lib = meta_schedule.relay_integration.compile_relay(
        database=database, mod=mod, target=target, params=params, opt_level=3
    )
    executor = tvm.contrib.graph_executor.GraphModule(lib["default"](tvm.cpu()))
    x = np.ones((4, 16), "float32")
    executor.set_input("x", x)
    executor.run()
    hidden = np.maximum(np.maximum(x @ params["w0"].T, 0) @ params["w1"].T, 0)
    expected = np.exp(hidden - hidden.max(1, keepdims=True))
    np.testing.assert_allclose(
        executor.get_output(0).numpy(), expected / expected.sum(1, keepdims=True), rtol=1e-4, atol=1e-5
    )


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    mod, params = two_products()
    with pytest.raises(TilewrightError, match="the strategies are evolutionary"):
        meta_schedule.tune_relay(mod, params, "llvm", str(tmp_path), 2, strategy="annealing")
    with pytest.raises(TilewrightError, match="at least one candidate"):
        meta_schedule.tune_relay(mod, params, "llvm", str(tmp_path), 0)
