"""The targets that a model is built for: one for each kind of device that it uses, and the host that launches them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tilewright.compile import host_of
from tilewright.ir.base import RelayExpr
from tilewright.ir.expr import IntImm
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.relay.analysis.devices import DevicePlan
from tilewright.relay.op.tensor.device import device_number
from tilewright.runtime.device import Device
from tilewright.support.errors import TargetError
from tilewright.target import Target


@dataclass(frozen=True)
class BuildTargets:
    """Targets by the number that DLPack has for their kind of device. Values without an annotation are on the default
    one."""

    by_device: Mapping[int, Target]
    default_device: int
    host: Target

    @property
    def default(self) -> Target:
        """The default target."""
        return self.by_device[self.default_device]

    @property
    def is_single(self) -> bool:
        """True if everything is on one device."""
        return len(self.by_device) == 1

    def of(self, device: int) -> Target:
        """The target of a kind of device; an error where none was given."""
        found = self.by_device.get(device)
        if found is None:
            known = ", ".join(Device(number).kind for number in self.by_device)
            raise TargetError(
                f"the model has values on {Device(device).kind}, and targets were given for {known} only; "
                f"pass one more: target={{'{Device(device).kind}': ..., ...}}"
            )
        return found


def build_targets(target: Any, target_host: Any = None) -> BuildTargets:
    """What a user gives as targets: one, or a dictionary from devices to targets; None means the current one."""
    given = target if target is not None else Target.current()
    if given is None:
        raise TargetError("name a target: relay.build(mod, target=...) or `with tvm.target.Target(...)`")
    if isinstance(given, Mapping) and not isinstance(given, Target) and "kind" not in given:
        by_device = {_device(device): _target(one) for device, one in given.items()}
        if not by_device:
            raise TargetError("a model is built for at least one target, and the dictionary is empty")
        for device, one in by_device.items():
            if one.kind.device_type != device:
                raise TargetError(
                    f"{one} is not a target for {Device(device).kind}: its kind of device is "
                    f"{Device(one.kind.device_type).kind}"
                )
    else:
        one = _target(given)
        by_device = {int(one.kind.device_type): one}
    host = _target(target_host) if target_host is not None else host_of(list(by_device.values()))
    by_device = {device: _with_host(one, target_host) for device, one in by_device.items()}
    wanted = PassContext.current().get("relay.fallback_device_type")
    default = wanted if wanted in by_device else next(iter(by_device))
    return BuildTargets(by_device, default, host)


def with_options(targets: BuildTargets, options: Mapping[str, Any]) -> BuildTargets:
    """The targets with further options, each where its kind of target knows them."""
    if not options:
        return targets
    host = _with_known(targets.host, options)
    by_device = {
        device: Target(_with_known(one, options), None if one.host is None else host)
        for device, one in targets.by_device.items()
    }
    return BuildTargets(by_device, targets.default_device, host)


def _with_known(target: Target, options: Mapping[str, Any]) -> Target:
    known = {key: value for key, value in options.items() if key in target.kind.options}
    return Target({**target.export(), **known}, target.host) if known else target


def devices_of(module: IRModule, targets: BuildTargets) -> Callable[[RelayExpr], int]:
    """Where the value of each expression of a module is."""
    if targets.is_single:
        return lambda expr: targets.default_device
    return DevicePlan(module, targets.default_device).device_of


def _device(given: Any) -> int:
    return device_number(int(given.value) if isinstance(given, IntImm) else given)


def _target(given: Any) -> Target:
    return given if isinstance(given, Target) else Target(given)


def _with_host(target: Target, host: Any) -> Target:
    return target if host is None else Target(target, host)
