"""Linear systems over the integers: the solutions are those that brute force finds."""

from __future__ import annotations

from itertools import product
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tilewright.arith import (
    IntConstraints,
    IntConstraintsTransform,
    IntGroupBounds,
    solve_linear_equations,
    solve_linear_inequalities,
)
from tilewright.arith.inequalities import solve_inequalities_as_conditions
from tilewright.ir.expr import EQ, GE, LE, IntImm, Range, Var, is_const
from tilewright.ir.operators import add, const, equal, multiply

x, y, z = (Var(name) for name in "xyz")
VARIABLES = (x, y, z)


def test_a_unique_solution_has_no_free_variables(same: Any) -> None:
    """Two equations for two unknowns."""
    found = solve_linear_equations([equal(x + y, 20), equal(x - y, 10)], [x, y])
    assert found.dst.variables == () and not found.dst.relations
    assert same(found.src_to_dst[x], 15) and same(found.src_to_dst[y], 5)


def test_nothing_to_solve() -> None:
    """Equations without variables to solve for stay as they are."""
    equations = [equal(x + y, 20), equal(x - y, 10)]
    found = solve_linear_equations(equations)
    assert found.dst is found.src and list(found.src.relations) == equations and not found.src_to_dst


def test_a_free_variable_for_each_missing_equation(same: Any) -> None:
    """The first variable that depends on a free one grows with it."""
    found = solve_linear_equations([equal(x + y + z, 15), equal(x + y, 10)], [x, y, z])
    (free,) = found.dst.variables
    assert same(found.src_to_dst[x], free + 10)
    assert same(found.src_to_dst[y], 0 - free)
    assert same(found.src_to_dst[z], 5)


def test_ranges_are_carried_over(same: Any) -> None:
    """The free variable's range follows from the old ones, and what it does not imply stays a relation."""
    found = solve_linear_equations(
        [equal(x + y, 0)], [x, y], {x: Range.from_min_extent(-5, 10), y: Range.from_min_extent(0, 10)}
    )
    (free,) = found.dst.variables
    assert same(found.dst.ranges[free].min, -9) and same(found.dst.ranges[free].extent, 10)
    assert len(found.dst.relations) == 1 and same(found.dst.relations[0], LE(const(-5), free))


def test_a_contradiction_is_false() -> None:
    """No variables, and the relation False; so is an equation that no integers satisfy."""
    for system in ([equal(x + y, 0), equal(x + y, 10)], [equal(x * 2, 5)]):
        found = solve_linear_equations(system, [x, y])
        assert found.dst.variables == () and found.src_to_dst == {} and found.dst_to_src == {}
        assert isinstance(found.dst.relations[0], IntImm) and not found.dst.relations[0].value


def test_what_is_not_linear_stays_a_relation(same: Any) -> None:
    """It is rewritten in terms of the new variables."""
    found = solve_linear_equations(IntConstraints([x, y], {}, [equal(x, y + 1), LE(x * y, const(6))]))
    (free,) = found.dst.variables
    assert len(found.dst.relations) == 1
    values = {x: found.src_to_dst[x], y: found.src_to_dst[y]}
    assert same(values[x], free) or same(values[y], free)


def _holds(evaluate: Any, relations: Any, values: Any) -> bool:
    return all(evaluate(relation, values) for relation in relations)


def _inside(evaluate: Any, ranges: Any, values: Any) -> bool:
    for variable, known in ranges.items():
        low = evaluate(known.min, values)
        if not low <= values[variable] < low + evaluate(known.extent, values):
            return False
    return True


def _linear(row: Any) -> Any:
    total: Any = const(0)
    for variable, factor in zip(VARIABLES, row, strict=True):
        total = add(total, multiply(variable, factor))
    return total


ROWS = st.lists(st.tuples(*[st.integers(-3, 3)] * 3), min_size=1, max_size=3)
BOX = {x: Range(-3, 4), y: Range(-2, 4), z: Range(0, 4)}
POINTS = [dict(zip(VARIABLES, point, strict=True)) for point in product(range(-3, 4), range(-2, 4), range(4))]
EXAMPLES = settings(max_examples=60, suppress_health_check=list(HealthCheck))


@EXAMPLES
@given(rows=ROWS, data=st.data())
def test_equations_against_brute_force(rows: Any, data: Any, evaluate: Any) -> None:
    """The maps between old and new variables are inverse on the solutions, and the new system holds just there."""
    right = data.draw(st.tuples(*[st.integers(-4, 4)] * len(rows)))
    system = [EQ(_linear(row), IntImm("int32", value)) for row, value in zip(rows, right, strict=True)]
    found = solve_linear_equations(system, VARIABLES, BOX)
    solutions = [values for values in POINTS if _holds(evaluate, system, values)]
    if any(isinstance(relation, IntImm) for relation in found.dst.relations):
        assert not solutions
        return
    images = []
    for values in solutions:
        image = {variable: evaluate(made, values) for variable, made in found.dst_to_src.items()}
        assert _inside(evaluate, found.dst.ranges, image) and _holds(evaluate, found.dst.relations, image)
        assert all(evaluate(found.src_to_dst[variable], image) == values[variable] for variable in VARIABLES)
        images.append(tuple(image.values()))
    for point in (
        product(range(-12, 13), repeat=len(found.dst.variables)) if len(found.dst.variables) < 3 else ()
    ):
        image = dict(zip(found.dst.variables, point, strict=True))
        if _inside(evaluate, found.dst.ranges, image) and _holds(evaluate, found.dst.relations, image):
            values = {variable: evaluate(found.src_to_dst[variable], image) for variable in VARIABLES}
            assert values in solutions, (system, image, values)


@EXAMPLES
@given(rows=ROWS, data=st.data())
def test_inequalities_against_brute_force(rows: Any, data: Any, evaluate: Any) -> None:
    """Ranges and relations hold of exactly the points that satisfy the source."""
    right = data.draw(st.tuples(*[st.integers(-4, 4)] * len(rows)))
    kinds = data.draw(st.tuples(*[st.sampled_from([LE, GE, EQ])] * len(rows)))
    system = [kind(_linear(row), const(value)) for kind, row, value in zip(kinds, rows, right, strict=True)]
    found = solve_linear_inequalities(system, VARIABLES, BOX)
    assert isinstance(found, IntConstraints)
    for values in POINTS:
        expected = _holds(evaluate, system, values)
        if not found.variables:
            assert not expected
        else:
            given_by = _inside(evaluate, found.ranges, values) and _holds(evaluate, found.relations, values)
            assert given_by is expected, (system, found.ranges, found.relations, values)


@EXAMPLES
@given(rows=ROWS, data=st.data())
def test_deskewed_inequalities_against_brute_force(rows: Any, data: Any, evaluate: Any) -> None:
    """The new variables start at zero, and the solutions correspond one to one."""
    right = data.draw(st.tuples(*[st.integers(-4, 4)] * len(rows)))
    system = [LE(_linear(row), const(value)) for row, value in zip(rows, right, strict=True)]
    found = solve_linear_inequalities(system, VARIABLES, BOX, deskew_range=True)
    assert isinstance(found, IntConstraintsTransform)
    solutions = [values for values in POINTS if _holds(evaluate, system, values)]
    if not found.src_to_dst:
        assert not solutions
        return
    for known in found.dst.ranges.values():
        assert isinstance(known.min, IntImm) and known.min.value == 0
    for values in solutions:
        image = {variable: evaluate(made, values) for variable, made in found.dst_to_src.items()}
        assert _inside(evaluate, found.dst.ranges, image) and _holds(evaluate, found.dst.relations, image)
        assert all(evaluate(found.src_to_dst[variable], image) == values[variable] for variable in VARIABLES)
    lengths = [range(evaluate(found.dst.ranges[variable].extent, {})) for variable in found.dst.variables]
    for point in product(*lengths):
        image = dict(zip(found.dst.variables, point, strict=True))
        if _holds(evaluate, found.dst.relations, image):
            values = {variable: evaluate(found.src_to_dst[variable], image) for variable in VARIABLES}
            assert values in solutions, (system, image, values)


def test_ranges_of_a_triangle(same: Any) -> None:
    """Each range is in terms of the variables after it; deskewed, the slanted side is a relation."""
    system = [x + y <= 20, x - y >= 10]
    ranges = {x: Range(-100, 100), y: Range(0, 10)}
    found = solve_linear_inequalities(system, [x, y], ranges)
    assert isinstance(found, IntConstraints)
    assert same(found.ranges[y].min, 0) and same(found.ranges[y].extent, 6)
    assert same(found.ranges[x].min, y + 10) and same(found.ranges[x].extent, 11)
    assert len(found.relations) == 1 and same(found.relations[0], y + x <= 20)
    moved = solve_linear_inequalities(system, [x, y], ranges, deskew_range=True)
    assert isinstance(moved, IntConstraintsTransform)
    new_x, new_y = moved.dst.variables
    assert same(moved.dst.ranges[new_x].extent, 11) and same(moved.dst.ranges[new_y].extent, 6)
    assert len(moved.dst.relations) == 1 and same(moved.dst.relations[0], new_y * 2 + new_x <= 10)
    assert same(moved.src_to_dst[x], new_x + (new_y + 10)) and same(moved.dst_to_src[new_x], x - y - 10)


def test_group_bounds(same: Any) -> None:
    """From a range and back; a coefficient rounds the ends inwards; an open side has no range."""
    back = IntGroupBounds.from_range(Range(2, 9)).find_best_range()
    assert back is not None and same(back.min, 2) and same(back.extent, 7)
    point = IntGroupBounds.from_range(Range.from_min_extent(x, 1)).find_best_range()
    assert point is not None and same(point.min, x) and same(point.extent, 1)
    scaled = IntGroupBounds(3, [const(4)], [], [const(14)]).find_best_range()
    assert scaled is not None and same(scaled.min, 2) and same(scaled.extent, 3)
    assert IntGroupBounds(1, [const(4)], [], []).find_best_range() is None


def test_inequalities_as_conditions() -> None:
    """Each variable has bounds in terms of those after it; a bound that another implies is left out."""
    ranges = {x: Range(-100, 100), y: Range(0, 10)}
    found = solve_inequalities_as_conditions([x, y], ranges, [LE(x + y, 20), GE(x - y, 10)])
    assert [str(one) for one in found] == ["x >= y + 10", "x <= 20 - y", "y >= 0", "y <= 5"]
    (impossible,) = solve_inequalities_as_conditions([x], {x: Range(0, 4)}, [GE(x, 9)])
    assert is_const(impossible, 0)
