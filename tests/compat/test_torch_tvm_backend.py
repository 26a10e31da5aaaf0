"""PyTorch's own backend "tvm", written for Relay, as PyTorch ships it."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("torch")

PROGRAM = """
import tilewright.as_tvm
import torch
from torch._dynamo.backends.tvm import has_tvm
assert has_tvm()
torch.manual_seed(0)
layers = [torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 5)]
model = torch.nn.Sequential(*layers).eval()
value = torch.randn(1, 3, 8, 8)
with torch.no_grad():
    tuned = {"scheduler": "meta_schedule", "trials": 2}
    for options in (None, {"scheduler": "default", "opt_level": 2}, {"scheduler": "auto_scheduler"}, tuned):
        torch._dynamo.reset()
        compiled = torch.compile(model, backend="tvm", options=options)
        torch.testing.assert_close(compiled(value), model(value))
        torch.testing.assert_close(compiled(value * 2), model(value * 2))
    torch._dynamo.reset()
    total, larger = torch.compile(lambda a, b: (a + b, a > b), backend="tvm")(value, value - 1)
    torch.testing.assert_close(total, 2 * value - 1)
    assert larger.dtype == torch.bool and bool(larger.all())
print("works")
"""


def test_the_backend_works_as_it_is() -> None:
    """With no scheduler and with each of those that it names; parameters arrive as inputs, flags leave as bool."""
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM], capture_output=True, text=True, check=False
    )
    assert ran.stdout.strip() == "works", ran.stderr[-2000:]
