"""Basic blocks."""

from tests.relay.programs import call, chain, let_chain

from tilewright.relay import Function, If, Let, Tuple, Var, var
from tilewright.relay.analysis import check_basic_block_normal_form
from tilewright.relay.analysis.blocks import Blocks

c, x = var("c", shape=(), dtype="bool"), var("x", shape=())


def test_sharing_within_a_block_is_the_normal_form() -> None:
    """However often."""
    shared = call("exp", x)
    assert check_basic_block_normal_form(Function([x], Tuple([shared, shared])))
    assert check_basic_block_normal_form(If(shared, call("exp", x), call("exp", x)))


def test_what_two_blocks_share_is_not() -> None:
    """Branches and functions are blocks."""
    shared = call("exp", x)
    assert not check_basic_block_normal_form(If(c, shared, call("negative", shared)))
    assert not check_basic_block_normal_form(Tuple([shared, Function([], shared)]))
    bound = Var("bound")
    assert check_basic_block_normal_form(Let(bound, shared, If(c, bound, call("negative", bound))))


def test_an_expression_belongs_to_the_block_around_all_its_uses() -> None:
    """Both branches of an inner conditional share it: it belongs to the outer branch."""
    shared = call("exp", x)
    inner = If(c, shared, call("negative", shared))
    outer = If(c, inner, x)
    blocks = Blocks(outer)
    assert blocks.of[shared] is blocks.inner[outer][0]
    assert list(blocks.lifted) == [shared]


def test_long_chains() -> None:
    """Depth does not matter."""
    assert check_basic_block_normal_form(chain(10_000))
    assert check_basic_block_normal_form(let_chain(10_000))
