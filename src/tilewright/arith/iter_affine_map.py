"""Quasi-affine iterator maps: see ``iter_map`` for what they are and ``iter_detect`` for how they are found."""

from tilewright.arith.iter_detect import detect_iter_map, inverse_affine_iter_map
from tilewright.arith.iter_map import (
    IterMapExpr,
    IterMark,
    IterSplitExpr,
    IterSumExpr,
    normalize_iter_map_to_expr,
)
from tilewright.arith.subspace import subspace_divide

__all__ = [
    "IterMapExpr",
    "IterMark",
    "IterSplitExpr",
    "IterSumExpr",
    "detect_iter_map",
    "inverse_affine_iter_map",
    "normalize_iter_map_to_expr",
    "subspace_divide",
]
