"""``topi.generic``, ``topi.x86``, ``topi.arm_cpu`` and ``topi.cuda``: names for one scheduler of the target."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from tilewright.compat import arm, cuda, x86
from tilewright.compat.operator_schedules import OF_X86, OPERATORS
from tilewright.compat.workloads import fallback_schedule
from tilewright.schedule import Outputs, cpu, current_target, gpu, schedule
from tilewright.schedule.cpu.existing import schedule_injective_from_existing
from tilewright.strategy import register_schedule_for
from tilewright.target.generic_func import DispatchedFunction, generic_func
from tilewright.te.schedule.auto_inline import auto_inline_injective
from tilewright.te.schedule.schedule import Schedule, create_schedule
from tilewright.te.tensor import Tensor


def schedule_default(outs: Outputs) -> Schedule:
    """The schedule that the current target's scheduler constructs."""
    return schedule(outs)


def default_schedule(outs: Outputs, auto_inline: bool) -> Schedule:
    """Every stage in plain loops at the root; with ``auto_inline``, what computes no reduction inlined."""
    tensors = [outs] if isinstance(outs, Tensor) else list(outs)
    made = create_schedule([tensor.op for tensor in tensors])
    if auto_inline:
        auto_inline_injective(made)
    return made


def wrap_topi_schedule(topi_schedule: Callable[[Any], Any]) -> Callable[[Any, Any, Any], Any]:
    """A schedule of outputs, called under the target: what strategies take."""

    def scheduled(attrs: Any, outs: Any, target: Any) -> Any:
        with target:
            return topi_schedule(outs)

    return scheduled


def _named(function: Callable[..., Schedule], name: str) -> Callable[..., Schedule]:
    function.__name__ = function.__qualname__ = f"schedule_{name}"
    function.__doc__ = f"The schedule of {name} with what is fused to it, given its outputs."
    return function


def _generic_schedule(name: str) -> DispatchedFunction:
    """The target's schedule under a name; what a user registers for a key is used for the operators of the name too."""

    def scheduled(outs: Outputs, *layouts: Any) -> Schedule:
        return schedule(outs)

    def tell(key: str, function: Callable[..., Any]) -> None:
        for calls in OPERATORS[name]:
            register_schedule_for(
                calls.operator,
                key,
                wrap_topi_schedule(function),
                calls.applies,
                f"topi.generic.schedule_{name}",
            )

    made = generic_func(_named(scheduled, name))
    made.generic.watch(tell)
    return made


def _cpu_schedule(name: str) -> Callable[..., Schedule]:
    def scheduled(outs: Outputs, *layouts: Any) -> Schedule:
        return cpu.SCHEDULER.schedule(outs, current_target())

    return _named(scheduled, name)


def _gpu_schedule(name: str) -> Callable[..., Schedule]:
    def scheduled(outs: Outputs, *layouts: Any) -> Schedule:
        return gpu.SCHEDULER.schedule(outs, current_target())

    return _named(scheduled, name)


@cache
def _generic() -> dict[str, Any]:
    return {
        "default_schedule": default_schedule,
        "schedule_default": schedule_default,
        "schedule_injective_from_existing": schedule_injective_from_existing,
        **{f"schedule_{name}": _generic_schedule(name) for name in OPERATORS},
    }


@cache
def _x86() -> dict[str, Any]:
    return {
        **x86.COMPUTATIONS,
        "_fallback_schedule": fallback_schedule,
        "schedule_injective_from_existing": schedule_injective_from_existing,
        **{f"schedule_{name}": _cpu_schedule(name) for name in OF_X86},
    }


@cache
def _arm() -> dict[str, Any]:
    return {**arm.COMPUTATIONS, **{f"schedule_{name}": _cpu_schedule(name) for name in arm.SCHEDULES}}


@cache
def _cuda() -> dict[str, Any]:
    return {**cuda.COMPUTATIONS, **{f"schedule_{name}": _gpu_schedule(name) for name in cuda.SCHEDULES}}


def attributes(module: str) -> dict[str, Any]:
    """The names of one of these modules, each always the same object."""
    if module.startswith("topi.cuda"):
        return _cuda()
    if module.startswith("topi.arm_cpu"):
        return _arm()
    return _x86() if module.startswith("topi.x86") else _generic()
