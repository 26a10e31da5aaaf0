"""Running loop-level functions on NumPy arrays.

The living definition of the IR, and the oracle for all that rewrites it.
"""

from tilewright.tir.interpreter.run import interpret

__all__ = ["interpret"]
