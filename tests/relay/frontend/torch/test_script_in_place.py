"""Writes in place, and views that are written through."""

import pytest
import torch
from tests.relay.frontend.torch.script_models import check, imported, numbers, scripted

from tilewright import relay
from tilewright.support.errors import ModelError


def rows_and_columns(x):
    y = x.clone()
    y[0] = 5
    y[:, 1] += 1
    y[-1] *= 2
    return y


def strided_parts(x):
    y = x.clone()
    y[::2, 1::2] = -1.0
    y[1:, 2:].t()[0] = 2
    y.view(-1)[2:4] = 0
    return y


def diagonal(x):
    y = x.clone()
    y.diagonal().fill_(9)
    return y


def views_made_before(x):
    y = x.clone()
    view = y[0]
    flat = y.view(-1)
    y += 10
    view[1] = 3
    return y, view, flat


def split_results(x):
    y = x.clone()
    a, b, c = y.unbind(0)
    a.add_(b)
    c.mul_(2)
    y.chunk(2, 1)[1].zero_()
    return y, a


def by_index(x):
    y = x.clone()
    y[torch.tensor([0, 2])] = 1.0
    y[y > 2] = 0.5
    return y


def argument_out(x):
    z = torch.empty_like(x)
    torch.add(x, x, out=z)
    return z


def shape_in_place(x):
    y = x.clone()
    z = y[0]
    y.unsqueeze_(0)
    z += 1
    return y


def keeps_its_type(x):
    y = torch.zeros(3, 4, dtype=torch.int64)
    y += (x > 0).to(torch.int64)
    y.add_(2)
    return y


def dropout_returns_its_input(x):
    y = x.clone()
    z = torch.dropout(y, 0.5, False)
    z += 1
    return y


PROGRAMS = [
    rows_and_columns, strided_parts, diagonal, views_made_before, split_results, by_index, argument_out,
    shape_in_place, keeps_its_type, dropout_returns_its_input,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_in_place(program):
    """What is written under one name is read under every other."""
    check(scripted(program), numbers(3, 4))


def write_in_branch(x):
    y = x.clone()
    view = y[0]
    if bool(x.sum() > 0):
        view += 10
    else:
        y[:, 1] = 5
    return y, view


@pytest.mark.parametrize("sign", [1, -1])
def test_write_in_a_branch(sign):
    """A branch writes to a tensor from outside, whichever the program takes."""
    check(scripted(write_in_branch), sign * numbers(3, 4).abs())


def write_in_loop(x):
    y = x.clone()
    i = 0
    while bool(y.sum() < 50):
        y[i % 2] += 3.0
        i += 1
    return y, i


def test_write_in_a_loop_at_a_place_that_the_program_computes():
    """The loop's state includes what it writes."""
    check(scripted(write_in_loop), numbers(3, 4))


def test_write_to_a_tensor_of_open_shape():
    """Positions are computed by the program."""
    check(scripted(rows_and_columns), numbers(3, 4), infos=[("input0", (relay.Any(), 4))])


def maybe_the_same(x):
    y = x.clone()
    z = y if bool(x.sum() > 0) else x.clone()
    z += 1
    return y


def test_memory_that_only_the_program_knows_is_refused():
    """Whether y changes depends on the branch: nothing is computed that may be wrong."""
    with pytest.raises(ModelError, match=r"may share its memory.*clone"):
        imported(scripted(maybe_the_same), [numbers(3, 4)])


def copied_or_not(x):
    y = x.t() + 0
    z = y.reshape(-1)
    z += 1
    return y


def test_reshape_that_may_copy_is_refused():
    """Whether the reshape is a view depends on how elements lie in memory."""
    with pytest.raises(ModelError, match="may share its memory"):
        imported(scripted(copied_or_not), [numbers(3, 4)])


def resized(x):
    y = x.clone()
    y.resize_([2, 2])
    return y


def test_other_memory_is_refused():
    """A tensor that gets another size in place."""
    with pytest.raises(ModelError, match=r"aten::resize_.*not supported: make a new tensor"):
        imported(scripted(resized), [numbers(3, 4)])


class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x):
        self.count += 1
        return x + self.count


def test_state_of_the_module_is_not_kept():
    """One call is right; that the next starts afresh is said."""
    module = scripted(Counter())
    with pytest.warns(UserWarning, match="writes to its own count"):
        imported(module, [numbers(3)])
