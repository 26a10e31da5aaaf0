"""The features of a statement as numbers in the order of TVM 0.8, most of them as logarithms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tilewright.auto_scheduler.features.accesses import (
    LOOP_REUSE,
    NO_REUSE,
    READ,
    READ_WRITE,
    SERIAL_REUSE,
    WRITE,
)
from tilewright.auto_scheduler.features.extract import CURVE_POINTS, StoreFeatures
from tilewright.auto_scheduler.features.operations import COUNTS

DEFAULT_MAX_BUFFERS = 5
"""How many tensors of a statement are described: those with the most cache lines."""

_PLACES = (
    "None",
    "InnerSpatial",
    "MiddleSpatial",
    "OuterSpatial",
    "InnerReduce",
    "MiddleReduce",
    "OuterReduce",
    "Mixed",
)
_ANNOTATIONS = ("vec", "unroll", "parallel")
_KINDS = (READ, WRITE, READ_WRITE)
_REUSES = (LOOP_REUSE, SERIAL_REUSE, NO_REUSE)
_THREADS = ("blockIdx.x", "blockIdx.y", "blockIdx.z", "threadIdx.x", "threadIdx.y", "threadIdx.z")
_SIZES = ("bytes", "unique_bytes", "lines", "unique_lines")
_OF_BUFFER = (
    *(f"acc_type.{kind}" for kind in _KINDS),
    *_SIZES,
    *(f"reuse_type.{kind}" for kind in _REUSES),
    *("reuse_dis_iter", "reuse_dis_bytes", "reuse_ct"),
    *(f"{size}_d_reuse_ct" for size in _SIZES),
    "stride",
)


@cache
def feature_names(max_buffers: int = DEFAULT_MAX_BUFFERS) -> tuple[str, ...]:
    """The name of each number."""
    return (
        *COUNTS,
        *(
            name
            for kind in _ANNOTATIONS
            for name in (
                *(f"{kind}_{part}" for part in ("num", "prod", "len")),
                *(f"{kind}_type.kPos{place}" for place in _PLACES),
            )
        ),
        "is_gpu",
        *(f"{thread.replace('.', '_')}_len" for thread in _THREADS),
        "vthread_len",
        *(f"B{number}.{name}" for number in range(max_buffers) for name in _OF_BUFFER),
        *(f"arith_intensity_curve_{number}" for number in range(CURVE_POINTS)),
        *("alloc_size", "alloc_prod", "alloc_outer_prod", "alloc_inner_prod"),
        *("outer_prod", "num_loops", "auto_unroll_max_step"),
    )


def _log(value: float) -> float:
    return math.log2(value + 1) if value >= 0 else -math.log2(1 - value)


def feature_vector(features: StoreFeatures, max_buffers: int = DEFAULT_MAX_BUFFERS) -> list[float]:
    """The numbers of one statement."""
    made = [_log(count) for count in features.counts]
    for kind in _ANNOTATIONS:
        made += _annotation(features.annotated[kind])
    made.append(1.0 if features.is_gpu else 0.0)
    made += [_log(features.threads[thread]) for thread in _THREADS]
    made.append(_log(features.virtual_threads))
    described = sorted(features.accesses, key=lambda one: (one.lines, one.bytes), reverse=True)[:max_buffers]
    for access in described:
        sizes = (access.bytes, access.unique_bytes, access.lines, access.unique_lines)
        made += [1.0 if access.kind == kind else 0.0 for kind in _KINDS]
        made += [_log(size) for size in sizes]
        made += [1.0 if access.reuse == kind else 0.0 for kind in _REUSES]
        made += [_log(access.reuse_dis_iter), _log(access.reuse_dis_bytes), _log(access.reuse_ct)]
        # What is not used again costs as much as if it were used half a time.
        made += [_log(size / access.reuse_ct if access.reuse_ct > 0.5 else size * 2) for size in sizes]
        made.append(_log(access.stride))
    made += [0.0] * (len(_OF_BUFFER) * (max_buffers - len(described)))
    made += features.curve
    made += [
        _log(value)
        for value in (
            *(features.alloc_size, features.alloc_prod, features.alloc_outer_prod, features.alloc_inner_prod),
            *(features.outer_prod, features.num_loops, features.auto_unroll_max_step),
        )
    ]
    return made


def _annotation(extents: Sequence[int]) -> list[float]:
    """Number, product and last extent of the loops with one annotation; where they are is not told apart."""
    place = "Mixed" if extents else "None"
    numbers = [len(extents), math.prod(extents) if extents else 0, extents[-1] if extents else 0]
    return [*map(_log, numbers), *(1.0 if place == one else 0.0 for one in _PLACES)]


def feature_matrix(
    found: Sequence[StoreFeatures], max_buffers: int = DEFAULT_MAX_BUFFERS
) -> NDArray[np.float32]:
    """A row for each statement."""
    return np.array([feature_vector(features, max_buffers) for features in found], dtype=np.float32)
