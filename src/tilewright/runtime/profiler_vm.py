"""A virtual machine that times its kernels, and the instructions between them that make and move tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.runtime.call_log import CallLog
from tilewright.runtime.device import Device
from tilewright.runtime.module import Module
from tilewright.runtime.profiling import NodeRun, Report
from tilewright.runtime.vm import Executable, VirtualMachine


def enabled() -> bool:
    """True: every build has the profiler."""
    return True


class VirtualMachineProfiler(VirtualMachine):
    """A machine whose ``profile`` runs a function with a clock at every kernel and allocation."""

    def __init__(
        self,
        exe: Executable | Module,
        device: Device | Sequence[Device],
        memory_cfg: str | Mapping[Any, str | int] | None = None,
    ) -> None:
        self._log = CallLog()
        super().__init__(exe, device, memory_cfg, log=self._log)
        if self._foreign is None:
            self._log.watch_instructions(self._machine.address)
        self._device = device if isinstance(device, Device) else next(iter(device))

    def profile(
        self, *args: Any, func_name: str = "main", collectors: object = None, **kwargs: Any
    ) -> Report:
        """Run a function once to warm up and once to measure: the times of its kernels and of its
        instructions for memory, in the order of the calls. Without arguments, those of ``set_input`` are used."""
        if args or kwargs:
            self.set_input(func_name, *args, **kwargs)
        if self._foreign is not None:
            calls = self._foreign.profile(func_name, self._inputs.get(func_name, []))
        else:
            self.invoke(func_name)
            self._log.clear()
            self.invoke(func_name)
            calls = [(call.name, call.begin_seconds, call.seconds) for call in self._log.calls()]
        runs = [
            NodeRun(number, f"{name}_{number}", name, begin, seconds)
            for number, (name, begin, seconds) in enumerate(calls)
        ]
        return Report(runs, str(self._device).replace("(", "").rstrip(")"))
