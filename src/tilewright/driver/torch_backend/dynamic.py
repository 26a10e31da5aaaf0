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
        self._outputs = signature.outputs

    def __call__(self, arguments: list[Any]) -> list[Any]:
        """The results for the arguments of the graph."""
        given = [_as_array(arguments[position]) for position in self._inputs]
        results = list(_tensors(self._machine.call("main", *given)))
        taken = {argument.data_ptr() for argument in arguments if isinstance(argument, torch.Tensor)}
        return [_finished(output, results, taken) for output in self._outputs]


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


def _finished(output: Output, results: list[NDArray], taken: set[int]) -> Any:
    if output.position is None:
        return output.value
    tensor = torch.from_dlpack(results[output.position])
    if not output.is_tensor:
        return tensor.item()
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
