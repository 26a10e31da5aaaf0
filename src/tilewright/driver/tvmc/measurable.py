"""Whether candidates of a search can run on this machine: asked before any work is done."""

from __future__ import annotations

from tilewright.driver.tvmc.errors import TVMCException
from tilewright.runtime.device import cuda
from tilewright.support.triple import is_host
from tilewright.target import Target

_REMOTE = "measure on a remote device, with tvmc tune --rpc-tracker HOST:PORT --rpc-key KEY"


def require_device(target: Target) -> None:
    """An error for a target whose kernels cannot run on this machine."""
    if "cuda" in target.keys:
        if not cuda(0).exist:
            raise TVMCException(
                f"kernels for {target} cannot be measured here: this machine has no NVIDIA GPU that can be used. Tune "
                f"on the machine that runs the model, or {_REMOTE}"
            )
    elif not is_host(str(target.attrs.get("mtriple", ""))):
        raise TVMCException(
            f"kernels for {target} cannot be measured here: tune on the machine that runs them, or {_REMOTE}"
        )


def require_processor(target: Target) -> None:
    """An error for a target that is not this machine's processor."""
    require_device(target)
    if "cpu" not in target.keys:
        raise TVMCException(
            f"tilewright tune measures kernels of the processor, not of {target}: use tvmc tune --target "
            f"{target.kind.name}"
        )
