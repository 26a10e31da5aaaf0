"""The architecture of this machine's NVIDIA GPU, which targets without one mean."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from tilewright.runtime.device import cuda

_ARCH_SPECIFIC: Final = 90
"""From Hopper on, the tensor cores' instructions are only in the variant "a" of each architecture."""


@cache
def device_arch() -> str:
    """Such as "sm_90a"; empty where there is no device."""
    device = cuda(0)
    version = device.compute_version if device.exist else None
    if not version:
        return ""
    number = int(version.replace(".", ""))
    return f"sm_{number}{'a' if number >= _ARCH_SPECIFIC else ''}"


def detect_arch(given: Mapping[str, Any]) -> dict[str, Any]:
    """The option ``arch`` that a target gets: none where it names one, or where there is no device.

    It is part of the target from then on: processes that compile for it need not, and after a fork cannot, ask the
    driver.
    """
    if given.get("arch") or given.get("mcpu"):
        return {}
    found = device_arch()
    return {"arch": found} if found else {}
