"""The limits of the machine, as the package measures them: see ``tilewright.codegen.llvm.limits``."""

from tilewright.codegen.llvm.limits import bandwidth, machine_limits, peak_flops

__all__ = ["bandwidth", "machine_limits", "peak_flops"]
