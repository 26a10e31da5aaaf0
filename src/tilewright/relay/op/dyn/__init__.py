"""Operators with dynamic shapes: ``dyn.x`` takes as arguments what ``x`` has as attributes.

Their results have dimensions that are unknown before the program runs; shape functions compute them from the values of
the arguments. Invalid arguments stop the program there. The functions of the other families choose between both kinds
of operators, and DynamicToStatic turns these into the others where their arguments become constants.
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
