"""Relations between axes: ranges down, values and sets up, and the conditions that keep loops inside."""

from __future__ import annotations

import pytest

import tilewright as tvm
from tilewright import te
from tilewright.arith import Analyzer, IntervalSet
from tilewright.ir.expr import IterVar, Range, Var
from tilewright.support.errors import LoweringError
from tilewright.te.schedule.relations import (
    Fuse,
    Rebase,
    Singleton,
    Split,
    bound_predicates,
    pass_down_marks,
    pass_down_ranges,
    pass_down_values,
    pass_up_sets,
    pass_up_values,
)


def axis(name: str, extent: int | None = None, start: int = 0) -> IterVar:
    """A data axis."""
    domain = None if extent is None else Range.from_min_extent(start, extent)
    return IterVar(domain, Var(name), IterVar.DataPar)


def extents(ranges: dict[IterVar, Range], *axes: IterVar) -> list[int]:
    """The extents of axes."""
    return [ranges[one].extent.value for one in axes]


@pytest.mark.parametrize(
    ("factor", "nparts", "wanted"),
    [(4, None, [4, 4]), (5, None, [3, 5]), (20, None, [1, 13]), (None, 4, [4, 4]), (None, 20, [13, 1])],
)
def test_ranges_of_a_split(factor: int | None, nparts: int | None, wanted: list[int]) -> None:
    """Thirteen iterations: the quotient is rounded up, a size beyond the extent shrinks."""
    parent, outer, inner = axis("i", 13), axis("o"), axis("n")
    make = tvm.tir.const
    relation = Split(
        parent,
        outer,
        inner,
        None if factor is None else make(factor),
        None if nparts is None else make(nparts),
    )
    ranges = {parent: parent.dom}
    pass_down_ranges([relation], ranges, Analyzer())
    assert extents(ranges, outer, inner) == wanted
    kept = {parent: parent.dom}
    pass_down_ranges([relation], kept, Analyzer(), kept=frozenset({inner, outer}))
    assert extents(kept, outer, inner)[0 if factor is None else 1] == (factor or nparts)


def test_ranges_of_the_others_and_what_is_missing() -> None:
    """Fused extents multiply, rebased ones start at zero, a new axis has one iteration."""
    i, j, fused, moved, single = axis("i", 3, 2), axis("j", 5), axis("f"), axis("m"), axis("s")
    ranges = {i: i.dom, j: j.dom}
    pass_down_ranges([Fuse(i, j, fused), Rebase(i, moved), Singleton(single)], ranges, Analyzer())
    assert extents(ranges, fused, moved, single) == [15, 3, 1]
    assert ranges[moved].min.value == 0
    with pytest.raises(LoweringError, match="axis x is not known"):
        pass_down_ranges([Rebase(axis("x"), moved)], {}, Analyzer())
    pass_down_ranges([Rebase(axis("x"), moved)], {}, Analyzer(), allow_missing=True)


def test_values_go_up_and_down() -> None:
    """Down from the roots and up again gives the roots, whatever the relations."""
    i, j = axis("i", 13, 3), axis("j", 5)
    outer, inner, fused, moved = axis("o"), axis("n"), axis("f"), axis("m")
    relations = [Split(i, outer, inner, tvm.tir.const(4), None), Rebase(j, moved), Fuse(inner, moved, fused)]
    ranges = {i: i.dom, j: j.dom}
    pass_down_ranges(relations, ranges, Analyzer())
    for row in range(3, 16):
        for column in range(5):
            down = {i: tvm.tir.const(row), j: tvm.tir.const(column)}
            pass_down_values(relations, ranges, down)
            up = {outer: down[outer], fused: down[fused]}
            pass_up_values(relations, ranges, up)
            simplify = Analyzer().simplify
            assert (simplify(up[i]).value, simplify(up[j]).value) == (row, column)


def test_sets_go_up() -> None:
    """All values of the leaves are all values of the roots; a point of the outer loop is a block."""
    i, outer, inner = axis("i", 13), axis("o"), axis("n")
    relations = [Split(i, outer, inner, tvm.tir.const(4), None)]
    ranges = {i: i.dom}
    analyzer = Analyzer()
    pass_down_ranges(relations, ranges, analyzer)
    whole = {one: IntervalSet.from_range(ranges[one]) for one in (outer, inner)}
    pass_up_sets(relations, ranges, whole, analyzer)
    assert (whole[i].min_value.value, whole[i].max_value.value) == (0, 12)
    block = {outer: IntervalSet.single_point(outer.var), inner: IntervalSet.from_range(ranges[inner])}
    pass_up_sets(relations, ranges, block, analyzer)
    assert analyzer.can_prove(block[i].max_value - block[i].min_value == 3)


def test_sets_of_fused_axes() -> None:
    """A part of a fused axis that may cross a row needs whole rows; one that cannot needs a part."""
    i, j, fused, outer, inner = axis("i", 4), axis("j", 8), axis("f"), axis("o"), axis("n")
    for factor, columns in ((4, 4), (3, 8), (8, 8)):
        relations = [Fuse(i, j, fused), Split(fused, outer, inner, tvm.tir.const(factor), None)]
        ranges = {i: i.dom, j: j.dom}
        analyzer = Analyzer()
        pass_down_ranges(relations, ranges, analyzer)
        analyzer.bind(outer.var, ranges[outer])
        sets = {outer: IntervalSet.single_point(outer.var), inner: IntervalSet.from_range(ranges[inner])}
        pass_up_sets(relations, ranges, sets, analyzer)
        size = analyzer.simplify(sets[j].max_value - sets[j].min_value + 1)
        assert size.value == columns, factor


def test_marks() -> None:
    """Bits of an axis go to every axis derived from it."""
    i, j, outer, inner, fused = axis("i"), axis("j"), axis("o"), axis("n"), axis("f")
    relations = [Split(i, outer, inner, tvm.tir.const(4), None), Fuse(inner, j, fused)]
    marks = {i: 1, j: 2}
    pass_down_marks(relations, marks)
    assert (marks[outer], marks[inner], marks[fused]) == (1, 1, 3)


def conditions(extent: int, *sizes: int) -> list[str]:
    """The guards of an axis whose inner part is split again and again."""
    parent = root = axis("i", extent)
    relations = []
    leaves = []
    for number, size in enumerate(sizes):
        outer, inner = axis(f"o{number}"), axis(f"n{number}")
        relations.append(Split(parent, outer, inner, tvm.tir.const(size), None))
        leaves.append(outer)
        parent = inner
    leaves.append(parent)
    ranges = {root: root.dom}
    analyzer = Analyzer()
    pass_down_ranges(relations, ranges, analyzer)
    values = {one: one.var for one in leaves}
    pass_up_values(relations, ranges, values)
    sets = {one.var: IntervalSet.from_range(ranges[one]) for one in leaves}
    return [str(one) for one in bound_predicates(relations, [root], ranges, values, sets, analyzer)]


def test_guards_are_there_exactly_where_needed() -> None:
    """None where splits divide; one for each level that runs over."""
    assert conditions(16, 4, 2) == []
    assert conditions(13, 4) == ["o0 * 4 + n0 < 13"]
    assert len(conditions(16, 8, 3)) == 1
    assert len(conditions(13, 8, 3)) == 2
    assert conditions(3, 8) == []


def test_relations_of_a_stage_are_objects_that_programs_look_at() -> None:
    """The names that programs know them by."""
    b = te.compute((8, 8), lambda i, j: i + j, name="B")
    s = te.create_schedule(b.op)
    outer, inner = s[b].split(b.op.axis[0], factor=4)
    fused = s[b].fuse(inner, b.op.axis[1])
    split, fuse = s[b].relations
    assert isinstance(split, te.schedule.Split) and (split.parent, split.outer, split.inner) == (
        b.op.axis[0],
        outer,
        inner,
    )
    assert split.factor.value == 4 and split.nparts is None
    assert isinstance(fuse, te.schedule.Fuse) and fuse.fused is fused
