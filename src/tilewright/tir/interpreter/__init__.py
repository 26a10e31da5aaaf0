"""Running loop-level functions on NumPy arrays.

The executable definition of the IR, and the oracle for everything that rewrites it.
"""

from tilewright.tir.interpreter.run import interpret

__all__ = ["interpret"]
