"""Ranks of memory scopes and threads: which threads share which memory."""

from __future__ import annotations

from enum import IntEnum


class StorageRank(IntEnum):
    """From memory that all threads share to private memory of one thread."""

    GLOBAL = 0
    SHARED = 1
    WARP = 2
    LOCAL = 3
    FRAGMENT = 4


_RANKS = (
    ("global", StorageRank.GLOBAL),
    ("shared", StorageRank.SHARED),
    ("warp", StorageRank.WARP),
    ("local", StorageRank.LOCAL),
    ("wmma.", StorageRank.LOCAL),
    ("texture", StorageRank.GLOBAL),
)


def storage_rank(scope: str) -> StorageRank:
    """The rank of a storage scope; scopes that no rule knows belong to special hardware and count as local."""
    return next((rank for prefix, rank in _RANKS if scope.startswith(prefix)), StorageRank.LOCAL)


def thread_rank(tag: str) -> int | None:
    """0 for blocks, 1 for the threads (and virtual threads) of a block; None for what is not a thread."""
    if tag.startswith("blockIdx."):
        return 0
    return 1 if tag.startswith(("threadIdx.", "vthread", "cthread")) else None


def thread_attribute(tag: str) -> str:
    """The key of the attribute that launches the threads of a tag; virtual threads become code of one thread."""
    return "virtual_thread" if tag.startswith(("vthread", "cthread")) else "thread_extent"


def default_storage_rank(innermost_thread: int) -> StorageRank:
    """Where a stage computed at this depth of threads keeps its result, by default."""
    return {-1: StorageRank.GLOBAL, 0: StorageRank.SHARED}.get(innermost_thread, StorageRank.LOCAL)


def scope_name(rank: StorageRank) -> str:
    """The storage scope of a rank."""
    return rank.name.lower()


def is_shared_by(rank: StorageRank, tag: str) -> bool:
    """True if memory of this rank must hold what all threads of this tag need."""
    if rank == StorageRank.WARP and tag == "threadIdx.x":
        return True
    position = thread_rank(tag)
    return position is not None and rank <= position
