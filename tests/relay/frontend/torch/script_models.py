"""TorchScript programs through ``from_pytorch``, compared with PyTorch."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from tilewright import cpu, relay
from tilewright.relay.frontend import from_pytorch


def scripted(program: Any) -> Any:
    """A function or module as TorchScript."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.script(program)


def traced(program: Any, *inputs: torch.Tensor) -> Any:
    """A function or module as the trace of a call."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.trace(program, inputs)


def numbers(*shape: int) -> torch.Tensor:
    """A tensor whose elements are all different."""
    return torch.arange(float(np.prod(shape))).reshape(shape) / 7 - 1


def imported(script: Any, inputs: Sequence[torch.Tensor], infos: Any = None) -> tuple[Any, dict[str, Any]]:
    """The module and its parameters; inputs are called ``input0``, ``input1`` …"""
    if infos is None:
        infos = [
            (f"input{place}", (tuple(one.shape), str(one.dtype).removeprefix("torch.")))
            for place, one in enumerate(inputs)
        ]
    return from_pytorch(script, infos)


def results(
    script: Any, inputs: Sequence[torch.Tensor], infos: Any = None, executor: str = "debug"
) -> list[Any]:
    """The outputs of the imported program, as arrays."""
    module, params = imported(script, inputs, infos)
    run = relay.create_executor(executor, mod=module, device=cpu(0), target="llvm").evaluate()
    return _arrays(run(**params, **{f"input{place}": one.numpy() for place, one in enumerate(inputs)}))


def _arrays(value: Any) -> list[Any]:
    if hasattr(value, "numpy"):
        return [value.numpy()]
    return [array for item in value for array in _arrays(item)]


def _tensors(value: Any) -> list[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [tensor for item in value for tensor in _tensors(item)]
    return [np.asarray(value.detach() if isinstance(value, torch.Tensor) else value)]


def check(script: Any, *inputs: torch.Tensor, infos: Any = None, executor: str = "debug") -> None:
    """The imported program computes what PyTorch does."""
    with torch.no_grad():
        expected = _tensors(script(*(one.clone() for one in inputs)))
    found = results(script, inputs, infos, executor)
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
