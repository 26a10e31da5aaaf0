"""The version of LLVM."""

import llvmlite.binding as llvm

from tilewright.target import codegen


def test_version_of_llvm() -> None:
    """It is the one that llvmlite carries."""
    assert codegen.llvm_version_major() == llvm.llvm_version_info[0] >= 14
