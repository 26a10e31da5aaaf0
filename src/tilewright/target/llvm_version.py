"""The version of LLVM that code is made with."""

from __future__ import annotations

from tilewright.support.errors import TargetError


def llvm_version_major(allow_none: bool = False) -> int | None:
    """The major version of LLVM; without LLVM an error, or None where that is allowed."""
    try:
        import llvmlite.binding as llvm
    except ImportError as missing:
        if allow_none:
            return None
        raise TargetError("LLVM was not found; it comes with the llvmlite package") from missing
    return int(llvm.llvm_version_info[0])
