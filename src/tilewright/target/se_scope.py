"""Where something is stored and executed: a device, the target that code for it is made for, and a memory scope."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.runtime.device import Device
from tilewright.target.target import Target


@dataclass(frozen=True, slots=True)
class SEScope:
    """A scope of storage and execution. What is not known is None or empty."""

    device_type: int
    virtual_device_id: int = 0
    target: Target | None = None
    memory_scope: str = ""


def make_se_scope(device: Device, target: Target | None = None, memory_scope: str = "") -> SEScope:
    """The scope of a device, a target and a memory scope."""
    return SEScope(device.device_type, device.device_id, target, memory_scope)
