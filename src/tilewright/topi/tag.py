"""Tags of computations: what a schedule may assume about them.

A tag is one of these names, or one of them followed by more, separated by a comma (``injective,pad``).
"""

from __future__ import annotations

from tilewright.te.tag import BROADCAST, ELEMWISE

INJECTIVE = "injective"
"""The element is a function of single elements of the inputs, at indices computed from its own."""
COMM_REDUCE = "comm_reduce"
"""A commutative reduction."""
COMM_REDUCE_IDX = "comm_reduce_idx"
"""A commutative reduction that carries indices along with values."""
MATMUL = "matmul"
"""A matrix product."""
EINSUM = "einsum"
"""A sum over the products of several inputs."""
WINOGRAD = "conv2d_winograd_NCHWc"
"""A convolution by Winograd's algorithm, with channels in blocks and the weight transformed."""
TRANSPOSED = "conv2d_transpose_NCHWc"
"""A transposed convolution with channels in blocks, put together from one convolution for each phase."""


def is_broadcast(tag: str) -> bool:
    """True for element-wise and broadcasting computations."""
    return tag.startswith((ELEMWISE, BROADCAST))


def is_injective(tag: str) -> bool:
    """True for computations that give each element from single elements of the inputs."""
    return tag.startswith((ELEMWISE, BROADCAST, INJECTIVE))
