"""Iterator maps: what is made by splitting and fusing is found, inverted and divided; what is not is refused."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from tilewright.arith import (
    IterMark,
    IterSplitExpr,
    IterSumExpr,
    detect_iter_map,
    inverse_affine_iter_map,
    normalize_iter_map_to_expr,
    subspace_divide,
)
from tilewright.ir.expr import IterVar, Range, SizeVar, Var
from tilewright.ir.operators import as_expr, const, less, logical_and
from tilewright.ir.operators import floordiv as fld
from tilewright.ir.operators import floormod as flm

x, y, z, c, n = Var("x"), Var("y"), Var("z"), Var("c"), SizeVar("n")


def domain(**extents: int) -> dict[Any, Range]:
    """Ranges from zero for the variables of these names."""
    return {{"x": x, "y": y, "z": z}[name]: Range(0, extent) for name, extent in extents.items()}


def pattern(total: IterSumExpr) -> tuple[Any, Any, Any]:
    """Extent, base and scale of a sum of one split."""
    split = total.args[0]
    return split.extent, total.base, split.scale


@pytest.mark.parametrize(
    ("index", "domains", "extent", "base", "scale"),
    [
        (x, domain(x=3), 3, 0, 1),
        (y * 3 + 1 + c + x, domain(x=3, y=4), 12, c + 1, 1),
        (x + y * 3, domain(x=3, y=4), 12, 0, 1),
        ((y * 3 + x) * 2 + 5, domain(x=3, y=4), 12, 5, 2),
        (fld(x, 3), domain(x=24), 8, 0, 1),
        (flm(x, 3), domain(x=24), 3, 0, 1),
        (fld(flm(x, 12), 3), domain(x=24), 4, 0, 1),
        (flm(x, 30), domain(x=24), 24, 0, 1),
        (fld(y * 3 + x, 4), domain(x=3, y=8), 6, 0, 1),
        (fld(x * 8, 4), domain(x=3), 3, 0, 2),
        (flm(x * 2, 8), domain(x=12), 4, 0, 2),
        (x, {x: Range(5, 9)}, 4, 5, 1),
        (x * n + y, {x: Range(0, 4), y: Range(0, n)}, n * 4, 0, 1),
    ],
    ids=str,
)
def test_single_indices(index: Any, domains: Any, extent: Any, base: Any, scale: Any, same: Any) -> None:
    """Extent, base and scale of the one split that an index is."""
    (found,) = detect_iter_map([index], domains)
    found_extent, found_base, found_scale = pattern(found)
    assert same(found_extent, extent) and same(found_base, base) and same(found_scale, scale)


@pytest.mark.parametrize(
    ("indices", "domains"),
    [
        ([x, x], domain(x=3)),
        ([y * 4 + x], domain(x=3, y=4)),
        ([y * 2 + x], domain(x=3, y=4)),
        ([flm(x, 5)], domain(x=24)),
        ([fld(x, 3), fld(x, 4)], domain(x=24)),
        ([flm(x, 4), fld(x, 2)], domain(x=24)),
        ([x * y], domain(x=3, y=4)),
        ([x * x], domain(x=3)),
        ([fld(x + 1, 3)], domain(x=24)),
    ],
    ids=str,
)
def test_what_is_not_a_map(indices: Any, domains: Any) -> None:
    """Overlapping digits, wrong strides, divisors that do not divide, products."""
    assert detect_iter_map(indices, domains) == []


def test_maps_print() -> None:
    """As the classes and parts that they are, within other expressions as well."""
    (found,) = detect_iter_map([fld(x, 4)], {x: Range(0, 16)})
    assert repr(found) == "IterSumExpr(IterSplitExpr(IterMark(x, 16), 4, 4, 1), 0)"
    assert repr(found + 1) == f"{found!r} + 1"


def test_bijective_maps_use_every_digit() -> None:
    """A digit left out is fine for a map, not for a bijection; so is a variable left out."""
    digits = [fld(x, 8), fld(flm(x, 8), 2)]
    assert len(detect_iter_map(digits, domain(x=24))) == 2
    assert detect_iter_map(digits, domain(x=24), require_bijective=True) == []
    assert len(detect_iter_map([*digits, flm(x, 2)], domain(x=24), require_bijective=True)) == 3
    assert detect_iter_map([x], domain(x=3, y=4), require_bijective=True) == []
    assert len(detect_iter_map([x], domain(x=3, y=4))) == 1


def test_axes_and_constants(same: Any) -> None:
    """Axes stand for their variables; an index without loop variables is a base; a loop of one is its start."""
    axis = IterVar(Range(0, 4), x, IterVar.DataPar)
    found = detect_iter_map([x, const(3), y], {axis: Range(0, 4), y: Range(7, 8)})
    assert same(pattern(found[0])[0], 4)
    assert not found[1].args and same(found[1].base, 3)
    assert not found[2].args and same(found[2].base, 7)


@pytest.mark.parametrize(
    ("indices", "predicate", "extents"),
    [
        ([x * 10 + y], x * 10 + y < 128, [128]),
        ([x * 10 + y], x * 10 + y <= 127, [128]),
        ([fld(x * 10 + y, 2), flm(x * 10 + y, 2)], x * 10 + y < 128, [64, 2]),
        ([x * 10 + y], x * 10 + y < 400, [130]),
        ([x, y], x < 7, [7, 10]),
        ([x * 10 + y], logical_and(x * 10 + y < 128, y < 10), [128]),
        ([x, y], x * 10 + y < 128, None),
        ([fld(x * 10 + y, 3)], x * 10 + y < 128, None),
    ],
    ids=str,
)
def test_predicates_bound_fused_iterators(indices: Any, predicate: Any, extents: Any, same: Any) -> None:
    """The guard of a split that does not divide; one that an index cannot respect is refused."""
    found = detect_iter_map(indices, domain(x=13, y=10), predicate)
    if extents is None:
        assert found == []
    else:
        assert all(same(pattern(item)[0], extent) for item, extent in zip(found, extents, strict=True))


def test_maps_are_the_expressions_they_stand_for(evaluate: Any) -> None:
    """Back as plain expressions, every index has its old value; and a map is one-to-one."""
    domains = domain(x=3, y=8, z=4)
    indices = [fld(y * 3 + x, 4) + 2, flm(y * 3 + x, 4) * 4 + z]
    found = detect_iter_map(indices, domains, require_bijective=True)
    seen = set()
    for vx, vy, vz in product(range(3), range(8), range(4)):
        values = {x: vx, y: vy, z: vz}
        made = tuple(evaluate(normalize_iter_map_to_expr(item), values) for item in found)
        assert made == tuple(evaluate(index, values) for index in indices)
        seen.add(made)
    assert len(seen) == 3 * 8 * 4


def test_inverse(evaluate: Any) -> None:
    """The variables come back from the indices, shared digits and starts included."""
    domains = {x: Range(0, 3), y: Range(0, 8), z: Range(5, 9)}
    indices = [fld(y * 3 + x, 4) + 2, flm(y * 3 + x, 4) * 4 + (z - 5)]
    outputs = [Var("p"), Var("q")]
    inverse = inverse_affine_iter_map(detect_iter_map(indices, domains, require_bijective=True), outputs)
    assert set(inverse) == {x, y, z}
    for vx, vy, vz in product(range(3), range(8), range(5, 9)):
        values = {x: vx, y: vy, z: vz}
        given = {output: evaluate(index, values) for output, index in zip(outputs, indices, strict=True)}
        assert {variable: evaluate(made, given) for variable, made in inverse.items()} == values


def _plain(division: list[list[IterMark]]) -> list[list[Any]]:
    return [[normalize_iter_map_to_expr(mark.source) for mark in pair] for pair in division[:-1]]


def test_division_by_inner_loops(same: Any) -> None:
    """The base goes with the inner part, and the extents multiply."""
    domains = domain(x=3, y=4, z=5)
    index = z * 12 + y * 3 + x + c
    found = subspace_divide([index], domains, [x])
    ((outer, inner),) = _plain(found)
    assert same(outer, z * 4 + y) and same(inner, x + c)
    assert same(found[0][0].extent, 20) and same(found[0][1].extent, 3)
    ((outer, inner),) = _plain(subspace_divide([index], domains, [x, y]))
    assert same(outer, z) and same(inner, y * 3 + x + c)
    ((outer, inner),) = _plain(subspace_divide([index], domains, []))
    assert same(outer, z * 12 + y * 3 + x) and same(inner, c)
    assert subspace_divide([index], domains, [x, z]) == []


def test_division_of_split_indices(evaluate: Any) -> None:
    """Each binding is ``outer * inner_extent + inner``, and neither part depends on the other's loops."""
    domains = domain(x=6, y=4, z=8)
    fused = (x * 4 + y) * 8 + z
    bindings = [fld(fused, 16), flm(fused, 16)]
    found = subspace_divide(bindings, domains, [z])
    assert len(found) == 3
    for vx, vy, vz in product(range(6), range(4), range(8)):
        values = {x: vx, y: vy, z: vz}
        for (outer, inner), marks, binding in zip(_plain(found), found, bindings, strict=False):
            whole = evaluate(outer, values) * evaluate(marks[1].extent, {}) + evaluate(inner, values)
            assert whole == evaluate(binding, values)
            assert evaluate(inner, {**values, x: 0, y: 0}) == evaluate(inner, values)
            assert evaluate(outer, {**values, z: 0}) == evaluate(outer, values)


def test_division_keeps_predicates(same: Any) -> None:
    """A bound on outer loops is the outer predicate, one on inner loops the inner; one on both cannot be divided."""
    domains = domain(x=13, y=10, z=5)
    found = subspace_divide([x * 10 + y, z], domains, [z], x * 10 + y < 128)
    assert same(found[-1][0].extent, less(x * 10 + y, 128)) and same(found[-1][1].extent, as_expr(True))
    found = subspace_divide([x * 10 + y, z], domains, [x, y], x * 10 + y < 128)
    assert same(found[-1][0].extent, as_expr(True)) and same(found[-1][1].extent, less(x * 10 + y, 128))
    assert subspace_divide([x * 10 + y, z], domains, [y], x * 10 + y < 128) == []


def test_splits_have_defaults(same: Any) -> None:
    """A split of a mark alone is the mark."""
    split = IterSplitExpr(IterMark(x, 8))
    assert same(split.lower_factor, 1) and same(split.extent, 8) and same(split.scale, 1)
    assert same(normalize_iter_map_to_expr(IterSumExpr([split], 3)), x + 3)
    assert same(normalize_iter_map_to_expr(IterSplitExpr(IterMark(x, 8), 2, 4, 3)), fld(x, 2) * 3)
    assert same(normalize_iter_map_to_expr(IterSplitExpr(IterMark(x, 8), 2, 2, 1)), fld(flm(x, 4), 2))
