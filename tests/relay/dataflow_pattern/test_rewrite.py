"""Replacing matches."""

from typing import Any

import pytest
from tests.relay.programs import call, chain

from tilewright.ir.op import Op
from tilewright.ir.structural import assert_structural_equal
from tilewright.relay import Call, Function, Tuple, const, var
from tilewright.relay.dataflow_pattern import (
    DFPatternCallback,
    is_constant,
    is_op,
    is_var,
    rewrite,
    wildcard,
)
from tilewright.support.errors import TilewrightError

for name in ("add", "subtract", "multiply", "divide", "nn.relu", "sqrt", "exp", "nn.batch_norm"):
    Op.register(name)
x, y, z = (var(name, shape=(4,)) for name in "xyz")


class AddToSubtract(DFPatternCallback):
    """Sums become differences."""

    def __init__(self) -> None:
        super().__init__()
        self.pattern = wildcard() + wildcard()

    def callback(self, pre: Any, post: Any, node_map: Any) -> Any:
        return call("subtract", post.args[0], post.args[1])


def test_matches_are_replaced() -> None:
    """Those inside the arguments of others too."""
    made = AddToSubtract().rewrite(call("add", call("add", x, y), call("exp", call("add", y, z))))
    assert_structural_equal(
        made, call("subtract", call("subtract", x, y), call("exp", call("subtract", y, z)))
    )


def test_what_does_not_match_stays_the_same_object() -> None:
    """With its types."""
    expr = call("exp", call("multiply", x, y))
    assert AddToSubtract().rewrite(expr) is expr


class DropZero(DFPatternCallback):
    """x + 0 is x."""

    def __init__(self) -> None:
        super().__init__()
        self.value, zero = wildcard(), is_constant()
        self.pattern = self.value + zero

    def callback(self, pre: Any, post: Any, node_map: Any) -> Any:
        return node_map[self.value][0]


def test_the_map_has_the_rewritten_parts() -> None:
    """A chain of ten thousand collapses to its start."""
    expr: Any = x
    for _ in range(10_000):
        expr = call("add", expr, const(0.0))
    assert DropZero().rewrite(expr) is x


class HalveRelu(DFPatternCallback):
    """relu(relu(x)) is relu(x)."""

    def __init__(self, **options: bool) -> None:
        super().__init__(**options)
        self.value = wildcard()
        self.pattern = is_op("nn.relu")(is_op("nn.relu")(self.value))

    def callback(self, pre: Any, post: Any, node_map: Any) -> Any:
        return call("nn.relu", node_map[self.value][0])


def test_rounds_go_on_until_nothing_changes() -> None:
    """Matches that share a computation wait for the next round."""
    function = chain(10_000, name="nn.relu")
    made = HalveRelu().rewrite(function)
    assert_structural_equal(made, chain(1, name="nn.relu"))


def test_one_round_alone() -> None:
    """Four become two."""
    assert_structural_equal(
        HalveRelu(rewrite_once=True).rewrite(chain(4, name="nn.relu")), chain(2, name="nn.relu")
    )


def test_a_value_that_is_used_elsewhere_is_not_taken() -> None:
    """The inner relu's value is still needed."""
    inner = call("nn.relu", x)
    expr = Tuple([call("nn.relu", inner), inner])
    assert HalveRelu().rewrite(expr) is expr


class NormToBatchNorm(DFPatternCallback):
    """gamma * (x - mean) / sqrt(var + eps) + beta in one call."""

    def __init__(self) -> None:
        super().__init__()
        self.x, self.var, self.mean = wildcard(), wildcard(), wildcard()
        self.beta, self.gamma, self.eps = wildcard(), wildcard(), is_constant()
        root = is_op("sqrt")(self.var + self.eps)
        self.pattern = self.gamma * (self.x - self.mean) / root + self.beta

    def callback(self, pre: Any, post: Any, node_map: Any) -> Any:
        parts = (self.x, self.gamma, self.beta, self.mean, self.var)
        return call("test.norm", *(node_map[part][0] for part in parts))


def test_arithmetic_in_any_order() -> None:
    """Products, sums and the quotient are found however they are written."""
    data, gamma, beta, mean, variance = (var(name, shape=(4,)) for name in ("d", "g", "b", "m", "v"))
    root = call("sqrt", call("add", variance, const(1e-5)))
    centred = call("subtract", data, mean)
    expected = call("test.norm", data, gamma, beta, mean, variance)
    for quotient in (
        call("divide", call("multiply", gamma, centred), root),
        call("multiply", gamma, call("divide", centred, root)),
        call("multiply", call("divide", gamma, root), centred),
    ):
        for total in (call("add", quotient, beta), call("add", beta, quotient)):
            assert_structural_equal(NormToBatchNorm().rewrite(total), expected)


def test_several_callbacks() -> None:
    """One makes what the other takes."""

    class SubtractToMultiply(DFPatternCallback):
        def __init__(self) -> None:
            super().__init__()
            self.pattern = wildcard() - wildcard()

        def callback(self, pre: Any, post: Any, node_map: Any) -> Any:
            return call("multiply", *post.args)

    made = rewrite([SubtractToMultiply(), AddToSubtract()], call("add", call("add", x, y), z))
    assert_structural_equal(made, call("multiply", call("multiply", x, y), z))


def test_callbacks_that_undo_one_another_are_an_error() -> None:
    """After a hundred rounds."""

    class Swap(DFPatternCallback):
        def __init__(self) -> None:
            super().__init__()
            self.pattern = is_op("subtract")(wildcard(), wildcard())

        def callback(self, pre: Any, post: Any, node_map: Any) -> Any:
            return call("subtract", post.args[1], post.args[0])

    with pytest.raises(TilewrightError, match="100 rounds of Swap"):
        Swap().rewrite(call("subtract", x, y))
    assert_structural_equal(rewrite(Swap(), call("subtract", x, x)), call("subtract", x, x))


def test_types_are_there_where_they_are_asked_for() -> None:
    """On the root as it was, in every round."""
    seen = []

    class Watch(DFPatternCallback):
        def __init__(self) -> None:
            super().__init__(require_type=True)
            self.pattern = is_op("exp")(wildcard())

        def callback(self, pre: Any, post: Any, node_map: Any) -> Any:
            seen.append(pre.checked_type.concrete_shape)
            return post

    Watch().rewrite(Function([x], call("exp", x)))
    assert seen == [(4,)]


def test_mistakes_are_said() -> None:
    """No pattern, no callback, something that is not an expression."""
    with pytest.raises(TilewrightError, match="has no pattern"):
        rewrite(DFPatternCallback(), x)
    callback = DFPatternCallback()
    callback.pattern = is_var("x")
    with pytest.raises(NotImplementedError):
        callback.rewrite(x)
    callback.callback = lambda pre, post, node_map: 1  # type: ignore[assignment, method-assign, return-value]
    with pytest.raises(TilewrightError, match="gave int"):
        callback.rewrite(x)


def test_functions_are_rewritten_inside() -> None:
    """And called ones as well."""
    p = var("p", shape=(4,))
    inner = Function([p], call("add", p, p))
    made = AddToSubtract().rewrite(Function([x], Call(inner, [x])))
    assert_structural_equal(made, Function([x], Call(Function([p], call("subtract", p, p)), [x])))
