"""The version of LLVM."""

import llvmlite.binding as llvm

from tilewright.target.llvm_version import llvm_version_major


def test_version_of_llvm() -> None:
    """It is the one that llvmlite carries."""
    assert llvm_version_major() == llvm.llvm_version_info[0] >= 14
