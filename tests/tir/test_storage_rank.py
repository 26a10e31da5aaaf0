"""Which threads share which memory."""

from __future__ import annotations

import pytest

from tilewright.tir.storage_rank import (
    StorageRank,
    default_storage_rank,
    is_shared_by,
    scope_name,
    storage_rank,
    thread_rank,
)


@pytest.mark.parametrize(
    ("scope", "rank"),
    [
        ("global", StorageRank.GLOBAL),
        ("global.texture", StorageRank.GLOBAL),
        ("shared", StorageRank.SHARED),
        ("shared.dyn", StorageRank.SHARED),
        ("warp", StorageRank.WARP),
        ("local", StorageRank.LOCAL),
        ("wmma.accumulator", StorageRank.LOCAL),
        ("local.accelerator", StorageRank.LOCAL),
        ("vendor", StorageRank.LOCAL),
    ],
)
def test_scopes(scope: str, rank: StorageRank) -> None:
    """A scope's first part gives its rank; unknown ones belong to one thread."""
    assert storage_rank(scope) == rank


@pytest.mark.parametrize(
    ("tag", "rank"),
    [
        ("blockIdx.x", 0),
        ("threadIdx.z", 1),
        ("vthread", 1),
        ("vthread.x", 1),
        ("cthread", 1),
        ("pipeline", None),
        ("", None),
    ],
)
def test_threads(tag: str, rank: int | None) -> None:
    """Blocks, threads, and what is neither."""
    assert thread_rank(tag) == rank


def test_who_shares() -> None:
    """Global memory serves all, shared memory the threads of a block, local memory none; a warp its lanes."""
    table = {
        ("global", "blockIdx.x"): True,
        ("global", "threadIdx.x"): True,
        ("shared", "blockIdx.x"): False,
        ("shared", "threadIdx.x"): True,
        ("shared", "vthread"): True,
        ("local", "threadIdx.x"): False,
        ("warp", "threadIdx.x"): True,
        ("warp", "threadIdx.y"): False,
        ("global", "pipeline"): False,
    }
    assert {key: is_shared_by(storage_rank(key[0]), key[1]) for key in table} == table


def test_defaults() -> None:
    """Outside threads global, in a block shared, in a thread local."""
    assert [scope_name(default_storage_rank(depth)) for depth in (-1, 0, 1)] == ["global", "shared", "local"]
