"""Regions between annotations."""

import pytest
from tests.relay.programs import call

from tilewright.ir.op import Op
from tilewright.relay import var
from tilewright.relay.analysis import AnnotatedRegionSet
from tilewright.support.errors import TilewrightError

BEGIN, END = "annotation.compiler_begin", "annotation.compiler_end"


def begin(value: object, compiler: str = "one") -> object:
    return call(BEGIN, value, compiler=compiler)


def end(value: object, compiler: str = "one") -> object:
    return call(END, value, compiler=compiler)


def regions(expr: object) -> AnnotatedRegionSet:
    return AnnotatedRegionSet(expr, Op.get(BEGIN), Op.get(END))  # type: ignore[arg-type]


x, y = var("x", shape=(4,)), var("y", shape=(4,))


def test_a_region_reaches_from_its_ends_to_its_begins() -> None:
    """What is between is inside; what feeds it is not."""
    first, second = begin(x), begin(y)
    inner = call("add", first, second)
    last = end(inner)
    found = regions(call("exp", last))
    assert len(found) == 1
    region = found.get_region(inner)
    assert region is not None
    assert region.args == [first, second]
    assert region.rets == [last]
    assert list(region.nodes) == [first, second, inner, last]
    assert found.get_region(x) is None


def test_an_end_separates_regions() -> None:
    """One after another are two."""
    middle = end(call("exp", begin(x)))
    found = regions(end(call("exp", begin(middle))))
    assert len(found) == 2
    assert found.get_region(middle) is not None


def test_a_region_may_have_several_ends() -> None:
    """Both results come from one computation."""
    inner = call("exp", begin(x))
    first, second = end(inner), end(call("negative", inner))
    found = regions(call("add", first, second))
    assert len(found) == 1
    assert list(found)[0].rets == [first, second]


def test_regions_for_two_compilers_do_not_meet() -> None:
    """Without an end between them they cannot be told apart."""
    with pytest.raises(TilewrightError, match="one and one for two meet|meet without an annotation"):
        regions(end(call("add", begin(x, "one"), begin(y, "two"))))
