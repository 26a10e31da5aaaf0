"""What all levels share: expressions, types, operators, modules, structural equality, passes, diagnostics."""

from tilewright.ir import intrinsics
