"""Where the text form defines what is shared."""

from tilewright import relay
from tilewright.relay.placement import Placement


def test_blocks() -> None:
    """What one branch uses lives in that branch; what both use, around them; the text itself is block 0."""
    x, c = relay.var("x"), relay.var("c")
    both, one = relay.exp(x), relay.negative(x)
    branches = relay.If(c, both, relay.add(both, one))
    function = relay.Function([c, x], branches)
    place = Placement(function)
    body = place.first_block[function]
    assert (place.home[function], place.home[branches], place.home[both]) == (0, body, body)
    assert place.home[one] == place.first_block[branches] + 1
    assert place.uses[both] == 2 and place.uses[one] == 1


def test_lets() -> None:
    """A chain that ends a block stays in it; a let that is an operand, or is used twice, has a block of its own."""
    a, b = relay.var("a"), relay.var("b")
    operand = relay.Let(b, relay.const(1), b)
    inner = relay.Let(relay.var("d"), operand, a)
    outer = relay.Let(a, relay.const(2), inner)
    place = Placement(outer)
    assert place.first_block[outer] == place.first_block[inner] == 0
    assert place.first_block[operand] != 0 and place.home[operand] == 0
    shared = relay.Let(a, relay.const(2), a)
    assert Placement(relay.Tuple([shared, shared])).first_block[shared] != 0


def test_a_shared_function_is_around_its_uses() -> None:
    """A node that an inner function and the code around it use lives around the function."""
    x = relay.var("x")
    shared = relay.exp(x)
    inner = relay.Function([], relay.negative(shared))
    root = relay.Function([x], relay.Tuple([inner, shared]))
    place = Placement(root)
    assert place.home[shared] == place.first_block[root]
    alone = relay.Function([x], relay.Tuple([inner]))
    place = Placement(alone)
    assert place.home[shared] == place.first_block[inner]
