"""Operators whose shapes the program computes: ``dyn.x`` takes as arguments what ``x`` has as attributes.

Their results have dimensions that nothing is known of before the program runs; shape functions, which read the
arguments, compute them. Wrong arguments stop the program there. The functions of the other families choose between
both kinds of operators, and DynamicToStatic turns these into the others where their arguments become constants.
"""

from tilewright.relay.op.dyn import (
    algorithm,
    broadcast,
    creation,
    padding,
    reshaping,
    resizing,
    slicing,
    sparse,
)

__all__ = ["algorithm", "broadcast", "creation", "padding", "reshaping", "resizing", "slicing", "sparse"]
