"""Tensors of PyTorch as arrays, which share their memory."""

from __future__ import annotations

from typing import Any

from tilewright.relay.frontend.torch.dtypes import dtype_name
from tilewright.relay.frontend.torch.package import torch_package
from tilewright.runtime import ndarray
from tilewright.runtime.ndarray import NDArray
from tilewright.support.errors import ModelError


def array_of(tensor: Any, what: str) -> NDArray:
    """The elements of a tensor, shared where it is contiguous on the CPU; ``what`` names it in messages."""
    torch = torch_package()
    dtype = dtype_name(tensor.dtype)
    found = tensor.detach()
    if type(found) is not torch.Tensor and isinstance(found, torch.nn.Parameter):
        found = found.data
    if found.layout != torch.strided:
        raise ModelError(f"{what} is a sparse tensor ({found.layout}): use to_dense() on it first")
    if found.device.type == "meta":
        raise ModelError(f"{what} is on the meta device and has no elements: load the model's weights first")
    if found.is_quantized:
        found = found.int_repr()
    found = found.cpu().resolve_neg().contiguous()
    if not found.numel():
        return ndarray.empty(tuple(found.shape), dtype)
    return ndarray.from_dlpack(found)
