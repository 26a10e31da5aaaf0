"""A graph with sizes that each call may have anew, run by the virtual machine, or compiled again for each of them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import make_fx

from tilewright import relay
from tilewright.driver.torch_backend.building import pass_context
from tilewright.driver.torch_backend.options import BackendOptions
from tilewright.driver.torch_backend.signature import Output, Signature
from tilewright.ir.module import IRModule
from tilewright.runtime.device import Device
from tilewright.runtime.ndarray import NDArray, array, from_dlpack
from tilewright.runtime.vm import VirtualMachine
from tilewright.target import Target

_NUMBERS = {bool: torch.bool, int: torch.int64, float: torch.float64}
_MOST_SPECIALIZATIONS = 64

Runner = Callable[[list[Any]], list[Any]]


class MachineRunner:
    """Calls a program of the virtual machine, whose results are new tensors."""

    def __init__(
        self, module: IRModule, signature: Signature, place: tuple[Device, Target], options: BackendOptions
    ) -> None:
        device, target = place
        with pass_context(options):
            self._machine = VirtualMachine(relay.vm.compile(module, target=target), device)
        positions = {name: position for position, name in enumerate(signature.inputs)}
        self._inputs = [positions[one.name_hint] for one in module["main"].params]
        self._outputs = [(output, _memory_order(output)) for output in signature.outputs]

    def __call__(self, arguments: list[Any]) -> list[Any]:
        """The results for the arguments of the graph."""
        given = [_as_array(arguments[position]) for position in self._inputs]
        results = list(_tensors(self._machine.call("main", *given)))
        taken = {argument.data_ptr() for argument in arguments if isinstance(argument, torch.Tensor)}
        return [_finished(output, order, results, taken) for output, order in self._outputs]


def _as_array(value: Any) -> NDArray:
    if isinstance(value, torch.Tensor):
        plain = value.detach().contiguous()
        # Memory of nothing has no address that could be shared.
        return from_dlpack(plain) if plain.numel() else array(plain.numpy())
    return array(torch.tensor(value, dtype=_NUMBERS[type(value)]).numpy())


def _tensors(result: Any) -> Iterator[NDArray]:
    if isinstance(result, NDArray):
        yield result
        return
    for field in result:
        yield from _tensors(field)


def _memory_order(output: Output) -> list[int] | None:
    """The dimensions of a result from the outermost to the innermost in memory, where that is not their own order.

    What AOTAutograd does with a result, such as making a view of it again, relies on it. It follows from the sizes that
    the graph was captured with.
    """
    if not output.is_tensor:
        return None
    value = output.value
    sizes, strides = ([_captured(one) for one in each] for each in (value.shape, value.stride()))
    if None in sizes or None in strides:
        return None
    order = sorted(range(len(sizes)), key=lambda axis: (-strides[axis], axis))
    step = 1
    for axis in reversed(order):
        if sizes[axis] != 1 and strides[axis] != step:
            return None  # with gaps, or elements that lie in several places
        step *= sizes[axis]
    return order if order != sorted(order) else None


def _captured(size: Any) -> Any:
    """The number that a size was when the graph was captured; None if that is not known."""
    return size.node.hint if isinstance(size, torch.SymInt) else size


def _finished(output: Output, order: list[int] | None, results: list[NDArray], taken: set[int]) -> Any:
    if output.position is None:
        return output.value
    tensor = torch.from_dlpack(results[output.position])
    if not output.is_tensor:
        return tensor.item()
    if order is not None:
        inverse = sorted(range(len(order)), key=order.__getitem__)
        return tensor.permute(order).contiguous().permute(inverse)
    if tensor.data_ptr() in taken:
        return tensor.clone()
    taken.add(tensor.data_ptr())
    return tensor


class SpecializingRunner:
    """Compiles a graph anew for each combination of sizes that it is called with, and keeps the latest ones."""

    def __init__(
        self, graph_module: torch.fx.GraphModule, build: Callable[[torch.fx.GraphModule], Runner]
    ) -> None:
        self._graph_module = graph_module
        self._build = build
        self._made: OrderedDict[tuple[Any, ...], Runner] = OrderedDict()

    def __call__(self, arguments: list[Any]) -> list[Any]:
        """The results for the arguments of the graph."""
        key = tuple(
            tuple(one.shape) + tuple(one.stride()) if isinstance(one, torch.Tensor) else one
            for one in arguments
        )
        runner = self._made.get(key)
        if runner is None:
            with torch.no_grad():
                fixed = make_fx(self._graph_module, tracing_mode="fake")(*arguments)
            runner = self._made[key] = self._build(fixed)
            if len(self._made) > _MOST_SPECIALIZATIONS:
                self._made.popitem(last=False)
        return runner(arguments)
