"""Conditions, loops, early returns, and the values that they carry."""

import pytest
import torch
from tests.relay.frontend.torch.script_models import check, imported, numbers, scripted

from tilewright import relay
from tilewright.relay.function import Function
from tilewright.support.errors import ModelError


def early_returns(x):
    if bool(x.sum() > 100):
        return x
    for _ in range(3):
        x = x + 1
        if bool(x.sum() > 30):
            return x * 2
    return x - 1


def known_conditions(x):
    if x.size(0) == 3 and x.dim() == 2:
        x = x + 1
    else:
        x = x.reshape(7, 7)
    return x


def turns_that_are_known(x):
    y = x
    for i in range(x.size(0)):
        for j in range(i):
            if j % 2 == 0:
                continue
            y = y + i * j
    return y


def numbers_in_a_loop(x):
    i = 0
    total = 0
    while total < 100:
        total += i * i
        i += 1
    return x + total, i


def turns_that_the_program_knows(x):
    y = x
    i = 0
    halves = 1.0
    while bool(y.sum() < 60):
        y = y + 1.5
        i += 1
        halves = halves / 2
    return y, i, halves


def loop_that_breaks(x):
    y = x
    for i in range(100000):
        y = y + i
        if bool(y.sum() > 500):
            break
    return y


def growing_tensor(x):
    y = x
    while bool(y.sum() < 60):
        y = torch.cat([y, x + 2])
    return y


def list_in_a_loop(x):
    found: list[torch.Tensor] = []
    y = x
    while bool(y.sum() < 60):
        y = y + 1.5
        found.append(y)
    return torch.cat(found, 0), torch.stack(found, 1), found[-1], len(found)


def list_of_tuples_in_a_loop(x):
    state = (x, x * 0)
    found: list[tuple[torch.Tensor, torch.Tensor]] = []
    while bool(state[0].sum() < 60):
        state = (state[0] + 2, state[1] + state[0])
        found.append(state)
    return found, state


def checks(x):
    assert x.size(0) == 3, "three rows"
    if bool(x.sum() > 1e6):
        raise RuntimeError("too large")
    return x + 1


PROGRAMS = [
    early_returns, known_conditions, turns_that_are_known, numbers_in_a_loop, turns_that_the_program_knows,
    loop_that_breaks, growing_tensor, list_in_a_loop, list_of_tuples_in_a_loop, checks,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_control_flow(program):
    """The program goes the way that PyTorch goes."""
    check(scripted(program), numbers(3, 4))


def test_loop_on_the_virtual_machine():
    """A loop is compiled code, too."""
    check(scripted(turns_that_the_program_knows), numbers(3, 4), executor="vm")


def test_known_loops_need_no_functions():
    """A loop of known length is written out, so that the graph executor can run it."""
    module, _ = imported(scripted(turns_that_are_known), [numbers(3, 4)])
    inner = []
    relay.analysis.post_order_visit(
        module["main"].body, lambda expr: inner.append(expr) if isinstance(expr, Function) else None
    )
    assert not inner


class Scale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(4, 4))

    def forward(self, x):
        weight = self.weight.t() * 0.2
        while bool(x.sum() > 1):
            x = x @ weight
        return x


def test_values_from_outside_are_computed_once():
    """The transposed weight is computed before the loop, not at every turn."""
    script = scripted(Scale())
    check(script, numbers(3, 4).abs())
    module, _ = imported(script, [numbers(3, 4)])
    text = str(module["main"])
    assert text.index("transpose") < text.index("%loop")


def two_ranks(x):
    return x if bool(x.sum() > 0) else x.reshape(-1)


def test_branches_of_different_rank_are_refused():
    """No type describes both."""
    with pytest.raises(ModelError, match=r"prim::If.*condition of branches that give.*computed from input0"):
        imported(scripted(two_ranks), [numbers(3, 4)])


def always_raises(x):
    raise ValueError("no")
    return x


def test_a_model_that_only_raises():
    """There is nothing to compute."""
    with pytest.raises(ModelError, match="raises an exception for every input"):
        imported(scripted(always_raises), [numbers(3, 4)])
