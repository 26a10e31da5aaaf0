"""The math functions of GPUs, with their errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tilewright.codegen.llvm.math import library
from tilewright.codegen.llvm.math.library import Function

FUNCTIONS: Final[Mapping[str, Function]] = {**library.FUNCTIONS}
