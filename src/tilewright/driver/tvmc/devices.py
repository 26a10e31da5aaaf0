"""The devices of this machine on which a compiled model runs: those that it was compiled for."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tilewright.driver.tvmc.errors import TVMCException
from tilewright.runtime.device import Device, cpu, device
from tilewright.target import Target


def graph_devices(graph: str) -> list[Device]:
    """The first device of every kind on which a graph, in the executor's JSON, has tensors."""
    kinds = json.loads(graph)["attrs"].get("device_index", ["list_int", []])[1]
    return [Device(kind) for kind in dict.fromkeys(kinds)] or [cpu(0)]


def target_devices(target: str | Target) -> list[Device]:
    """The first device of the kind that a target makes code for."""
    return [Device(Target(target).kind.device_type)] if target else [cpu(0)]


def require_devices(devices: Sequence[Device]) -> None:
    """An error for a device that this machine does not have."""
    for one in devices:
        if not one.exist:
            raise TVMCException(
                f"the model was compiled for {one.kind}, and this machine has no such device that can be used: "
                "'tilewright doctor' lists the devices"
            )


def require_named(name: str, devices: Sequence[Device]) -> None:
    """An error if a model is to run on another kind of device than it was compiled for."""
    kinds = {one.kind for one in devices}
    if kinds != {"cpu"}:
        kinds -= {"cpu"}
    if device(name).kind not in kinds:
        made_for = " and ".join(sorted(kinds))
        raise TVMCException(
            f"the model was compiled for {made_for} and cannot run on {name}: choose the device {made_for}, or "
            f"compile it with --target {'llvm' if name == 'cpu' else name}"
        )


def timed_device(devices: Sequence[Device]) -> Device:
    """The device whose clock times a run: one that works beside the host, if there is one."""
    return next((one for one in devices if one.kind != "cpu"), devices[0])
