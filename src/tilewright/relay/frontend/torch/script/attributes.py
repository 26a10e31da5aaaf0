"""The attributes of a script module: parameters and buffers as variables of the program, numbers as they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.ir.base import RelayExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.relay.expr import Constant, Var
from tilewright.relay.frontend.torch.arrays import array_of
from tilewright.relay.frontend.torch.node import Scope
from tilewright.relay.frontend.torch.package import torch_package
from tilewright.relay.frontend.torch.script.store import Store
from tilewright.relay.frontend.torch.script.values import Cell, ModuleValue, ObjectValue, Quantization, Tensor
from tilewright.runtime.ndarray import NDArray


class Attributes:
    """Reads attributes; the tensors that were read are ``params``, under their paths in the module.

    A tensor that has several paths is one parameter, under the path that was read first.
    """

    store: Store

    def __init__(self, scope: Scope, friendly_names: bool = False, keep_quantized: bool = False) -> None:
        self.scope = scope
        self.friendly_names = friendly_names
        self.keep_quantized = keep_quantized
        self.params: dict[str, NDArray] = {}
        self.variables: list[Var] = []
        self.packed: dict[str, Any] = {}
        """The unpacked weights of quantised layers, by path."""
        self._tensors: dict[Any, Tensor] = {}
        self._changed: dict[tuple[str, ...], Any] = {}

    def get(self, owner: ModuleValue, name: str) -> Any:
        """The value of an attribute of a module."""
        path = (*owner.path, name)
        if path in self._changed:
            return self._changed[path]
        return self.imported(getattr(owner.module, name), path)

    def set(self, owner: ModuleValue, name: str, value: Any) -> None:
        """An attribute is replaced; that lasts until the end of the call."""
        path = (*owner.path, name)
        self._changed[path] = value
        self.store.written_attributes[".".join(path)] = None

    def imported(self, value: Any, path: tuple[str, ...]) -> Any:
        """A value of the module as a value of the graph."""
        torch = torch_package()
        if isinstance(value, (torch.nn.Module, torch._C.ScriptModule)):
            return ModuleValue(value, path)
        if isinstance(value, torch.Tensor):
            return self.tensor(value, path)
        if isinstance(value, torch.ScriptObject):
            return ObjectValue(value, path)
        if isinstance(value, list):
            return self.store.list_of([self.imported(item, (*path, str(i))) for i, item in enumerate(value)])
        if isinstance(value, tuple):
            return tuple(self.imported(item, (*path, str(i))) for i, item in enumerate(value))
        if isinstance(value, dict):
            return self.store.dict_of(
                {key: self.imported(item, (*path, str(key))) for key, item in value.items()}
            )
        return value

    def tensor(self, value: Any, path: tuple[str, ...]) -> Tensor:
        """The handle of a parameter or buffer."""
        key: Any = path
        if not value.is_quantized and value.numel():
            key = (value.data_ptr(), value.dtype, tuple(value.shape), tuple(value.stride()))
        if key not in self._tensors:
            name = ".".join(path)
            stored, quantization = stored_tensor(value, name)
            is_number = stored.dtype.is_integral or stored.dtype.is_bool
            # Integers may be indices or sizes, which have to be known.
            expr = Constant(stored) if is_number and quantization is None else self.parameter(name, stored)
            self._tensors[key] = Tensor(self._root_cell(expr, name), quantization=quantization)
        return self._tensors[key]

    def _root_cell(self, expr: RelayExpr, path: str) -> Cell:
        """A cell that every frame sees: an attribute may first be read inside a branch."""
        frame = self.store.frame
        while frame.parent is not None:
            frame = frame.parent
        made = self.store.cell(expr, path)
        made.level = 0
        frame.contents[made] = self.store.frame.contents.pop(made)
        return made

    def parameter(self, name: str, value: NDArray) -> Var:
        """A new variable for an array, which becomes one of the parameters."""
        name = plain = name.replace(".", "_") if self.friendly_names else name
        while name in self.params:
            if np.array_equal(self.params[name].numpy(), value.numpy()):
                return next(one for one in self.variables if one.name_hint == name)
            name = f"{plain}_{len(self.params)}"
        variable = Var(name, TensorType(value.shape, value.dtype))
        self.params[name] = value
        self.variables.append(variable)
        self.scope.param_values[variable] = value
        return variable


def stored_tensor(value: Any, name: str) -> tuple[NDArray, Quantization | None]:
    """The array of a PyTorch tensor; of a quantised one its integers, and what they stand for."""
    if not value.is_quantized:
        return array_of(value, f"the tensor {name!r}"), None
    torch = torch_package()
    if value.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric):
        scale: Any = float(value.q_scale())
        zero: Any = int(value.q_zero_point())
        axis = None
    else:
        scale = Constant(value.q_per_channel_scales().float().numpy())
        zero = Constant(value.q_per_channel_zero_points().int().numpy())
        axis = int(value.q_per_channel_axis())
    integers = array_of(value, f"the tensor {name!r}")
    return integers, Quantization(scale, zero, str(integers.dtype), axis)
