"""ReshapeUnmoved: what moves nothing, what does, and chains of both."""

from __future__ import annotations

import numpy as np
import pytest
from tests.relay.transform.checks import after, assert_same_value, operators, typed

from tilewright import relay
from tilewright.ir.structural import assert_structural_equal
from tilewright.relay.transform import ReshapeUnmoved


def image(*shape: int) -> relay.Var:
    """A variable of this shape."""
    return relay.var("x", shape=shape)


UNMOVED = {
    "plain to blocks of one": lambda: relay.layout_transform(image(1, 3, 4, 5), "NCHW", "NCHW1c"),
    "blocks of one to plain": lambda: relay.layout_transform(image(2, 3, 4, 5, 1), "NCHW1c", "NCHW"),
    "one block to channels last": lambda: relay.transpose(
        relay.layout_transform(image(2, 1, 4, 5, 6), "NCHW6c", "NCHW"), (0, 2, 3, 1)
    ),
    "channels last to one block": lambda: relay.layout_transform(
        relay.transpose(image(1, 4, 5, 6), (0, 3, 1, 2)), "NCHW", "NCHW6c"
    ),
    "rows of a product to one block": lambda: relay.layout_transform(
        relay.transpose(relay.reshape(image(20, 6), (1, 4, 5, 6)), (0, 3, 1, 2)), "NCHW", "NCHW6c"
    ),
    "a single pixel in blocks": lambda: relay.reshape(
        relay.layout_transform(image(1, 2, 1, 1, 4), "NCHW4c", "NCHW"), (1, 8)
    ),
    "axes of one": lambda: relay.transpose(image(1, 3, 1, 4), (2, 1, 0, 3)),
    "there and back": lambda: relay.transpose(relay.transpose(image(2, 3, 4), (1, 2, 0)), (2, 0, 1)),
}

MOVED = {
    "two blocks to channels last": lambda: relay.transpose(
        relay.layout_transform(image(1, 2, 4, 5, 3), "NCHW3c", "NCHW"), (0, 2, 3, 1)
    ),
    "plain to blocks": lambda: relay.layout_transform(image(1, 4, 3, 3), "NCHW", "NCHW2c"),
    "a torn axis": lambda: relay.transpose(
        relay.reshape(relay.transpose(image(4, 6), (1, 0)), (3, 8)), (1, 0)
    ),
    "a shape that is not known": lambda: relay.transpose(relay.var("x", shape=(relay.Any(), 3)), (1, 0)),
}


@pytest.mark.parametrize("name", UNMOVED)
def test_what_stays_in_place_is_a_reshape(name: str) -> None:
    """Nothing but a reshape is left, with the same value."""
    given = typed(UNMOVED[name]())
    made = after(ReshapeUnmoved(), given)
    assert set(operators(made)) <= {"reshape"}
    assert_same_value(given, made)


@pytest.mark.parametrize("name", MOVED)
def test_what_moves_stays(name: str) -> None:
    """Nothing changes."""
    given = MOVED[name]()
    assert_structural_equal(after(ReshapeUnmoved(), given), typed(given))


def test_blocks_of_one_channel_of_open_sizes() -> None:
    """An axis of one element comes and goes, whatever the height and width are."""
    x = relay.var("x", shape=(relay.Any(), 8, relay.Any(), relay.Any()))
    blocked = relay.layout_transform(x, "NCHW", "NCHW1c")
    assert operators(after(ReshapeUnmoved(), blocked)) == ["expand_dims"]
    back = relay.layout_transform(relay.abs(blocked), "NCHW1c", "NCHW")
    assert operators(after(ReshapeUnmoved(), back)) == ["expand_dims", "abs", "squeeze"]


def test_the_end_of_a_chain_may_stay_in_place_alone() -> None:
    """What moves at the start is kept, and what follows it is a reshape."""
    moved = relay.transpose(image(4, 6), (1, 0))
    given = relay.layout_transform(relay.reshape(moved, (1, 6, 2, 2)), "NCHW", "NCHW1c")
    assert operators(after(ReshapeUnmoved(), given)) == ["transpose", "reshape"]


def test_random_chains_keep_their_values() -> None:
    """Transposes and reshapes of small tensors, ten in a row."""
    generator = np.random.default_rng(3)
    for _ in range(40):
        expr: relay.Expr = image(2, 1, 3, 4)
        shape = [2, 1, 3, 4]
        for _ in range(int(generator.integers(2, 6))):
            if generator.integers(2):
                order = [int(axis) for axis in generator.permutation(len(shape))]
                expr, shape = relay.transpose(expr, order), [shape[axis] for axis in order]
            else:
                shape = [[24], [2, 12], [4, 6], [3, 1, 8], [2, 3, 4], [1, 2, 2, 6]][
                    int(generator.integers(6))
                ]
                expr = relay.reshape(expr, shape)
        given = typed(expr)
        assert_same_value(given, after(ReshapeUnmoved(), given))
