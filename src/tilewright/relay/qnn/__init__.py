"""The dialect of quantised programs: operators on integers that stand for real numbers.

A quantised tensor holds integers ``q`` that stand for ``scale * (q - zero_point)``. Scales and zero points are
arguments of the operators: scalars, or, where it says so, vectors with one element per channel.

Every operator has a reference in NumPy and a canonical form in ordinary operators, which ``transform.CanonicalizeOps``
puts in its place; a build does that first.
"""

from tilewright.relay.qnn import op, transform

__all__ = ["op", "transform"]
