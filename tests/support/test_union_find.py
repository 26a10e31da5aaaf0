"""Disjoint sets."""

import itertools

from tilewright.support.union_find import UnionFind


def test_joined_objects_have_one_representative() -> None:
    """Each object starts as a set of its own; joining the representatives of two sets makes one of them."""
    first, second, third = UnionFind(), UnionFind(), UnionFind()
    assert [one.find() for one in (first, second, third)] == [first, second, third]
    first.parent = second
    assert first.find() is second.find() is second
    assert third.find() is third


def test_a_long_chain_is_short_after_a_look_up() -> None:
    """Every object on the way to the representative points at it afterwards; depth does not matter."""
    members = [UnionFind() for _ in range(10_000)]
    for member, parent in itertools.pairwise(members):
        member.parent = parent
    assert members[0].find() is members[-1]
    assert all(member.parent is members[-1] for member in members[:-1])
