"""A graph whose sizes are all known, run by the graph executor in PyTorch's own memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from tilewright import relay
from tilewright.driver.torch_backend.building import pass_context
from tilewright.driver.torch_backend.options import BackendOptions
from tilewright.driver.torch_backend.signature import Output, Signature
from tilewright.ir.module import IRModule
from tilewright.runtime.device import Device
from tilewright.runtime.graph_call import ALIGNMENT, GraphCall, input_storage, output_storage
from tilewright.runtime.graph_executor import GraphExecutor
from tilewright.runtime.ndarray import from_dlpack
from tilewright.target import Target

_MISALIGNED = ALIGNMENT - 1


class StaticRunner:
    """Calls a compiled graph: inputs are read where they are, and results written into new tensors.

    Calls at the same time have an executor each, which is kept for later calls; all of them share the constants.
    """

    def __init__(
        self, module: IRModule, signature: Signature, place: tuple[Device, Target], options: BackendOptions
    ) -> None:
        device, target = place
        with pass_context(options):
            factory = relay.build(module, target=target)
        self._create = factory["default"]
        self._device = device
        self._signature = signature
        self._idle = [self._made()]

    def _made(self) -> _Executor:
        return _Executor(self._create(self._device), self._signature)

    def __call__(self, arguments: list[Any]) -> list[Any]:
        """The results for the arguments of the graph."""
        try:
            executor = self._idle.pop()
        except IndexError:
            executor = self._made()
        try:
            return executor(arguments)
        finally:
            self._idle.append(executor)


class _Executor:
    """One executor, with the plan of a call: which argument and which result is in which storage."""

    def __init__(self, executor: GraphExecutor, signature: Signature) -> None:
        self._executor = executor
        self._inputs: list[int] = []
        self._copied_inputs: list[tuple[int, int]] = []
        storages: list[int] = []
        for position, (name, example) in enumerate(zip(signature.inputs, signature.examples, strict=True)):
            index = executor.get_input_index(name)
            if index < 0 or not isinstance(example, torch.Tensor):
                continue
            storage = input_storage(executor, index)
            if storage is None:
                self._copied_inputs.append((position, index))
            else:
                self._inputs.append(position)
                storages.append(storage)
        self._known = [None if output.is_tensor else output.value for output in signature.outputs]
        self._made: list[tuple[int, Callable[[], torch.Tensor]]] = []
        self._copied_outputs: list[tuple[int, Output]] = []
        self._restrided: list[tuple[int, Output]] = []
        for position, output in enumerate(signature.outputs):
            if not output.is_tensor:
                continue
            assert output.position is not None
            storage = output_storage(executor, output.position)
            if storage is None or storage in storages:
                self._copied_outputs.append((position, output))
                continue
            storages.append(storage)
            value = output.value
            # The device is said: what PyTorch allocates on by default is the caller's choice.
            make = partial(torch.empty, tuple(value.shape), dtype=value.dtype, device=value.device)
            self._made.append((position, make))
            if not value.is_contiguous():
                self._restrided.append((position, output))
        self._call = GraphCall(executor, storages)

    def __call__(self, arguments: list[Any]) -> list[Any]:
        addresses: list[int] = []
        kept: list[torch.Tensor] = []
        for position in self._inputs:
            tensor = arguments[position]
            address = tensor.data_ptr()
            if address & _MISALIGNED or not tensor.is_contiguous():
                tensor = tensor.detach().clone(memory_format=torch.contiguous_format)
                kept.append(tensor)
                address = tensor.data_ptr()
            addresses.append(address)
        results = self._known.copy()
        for position, make in self._made:
            made = results[position] = make()
            addresses.append(made.data_ptr())
        for position, index in self._copied_inputs:
            self._executor.set_input(index, from_dlpack(arguments[position].detach().contiguous()))
        self._call(addresses)
        for position, output in self._copied_outputs:
            # Either memory of the graph, or a result that is there already: a tensor of its own in any case.
            assert output.position is not None
            view = torch.from_dlpack(self._executor.get_output(output.position))
            results[position] = _like(output.value).copy_(view)
        for position, output in self._restrided:
            results[position] = _like(output.value).copy_(results[position])
        return results


def _like(value: torch.Tensor) -> torch.Tensor:
    """A new tensor with the sizes and strides of a fake one."""
    return torch.empty_strided(
        tuple(value.shape), tuple(value.stride()), dtype=value.dtype, device=value.device
    )
