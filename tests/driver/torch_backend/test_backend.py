"""torch.compile(backend="tilewright"): values, memory and threads in inference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.threads import in_threads

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402


def small() -> nn.Module:
    """A convolution, a norm, and a layer on what is left."""
    layers = [
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    ]
    return nn.Sequential(*layers, nn.Linear(8, 4)).eval()


@torch.no_grad()
def test_a_model_gives_what_eager_gives(compiled: Callable[..., Any]) -> None:
    model = small()
    value = torch.randn(2, 3, 8, 8)
    torch.testing.assert_close(compiled(model)(value), model(value))


@torch.no_grad()
def test_results_are_new_tensors(compiled: Callable[..., Any]) -> None:
    """A later call does not write over an earlier result, and results do not share memory with inputs or each other."""
    function = lambda x: (x + 1, x * 2, (x + 1).reshape(-1))
    call = compiled(function)
    first_input, second_input = torch.arange(8.0).reshape(2, 4), torch.ones(2, 4)
    first = call(first_input)
    call(second_input)
    for found, wanted in zip(first, function(first_input), strict=True):
        torch.testing.assert_close(found, wanted)
    first[0].zero_()
    torch.testing.assert_close(first[2], (first_input + 1).reshape(-1))


@torch.no_grad()
def test_an_input_that_is_returned_is_the_input(compiled: Callable[..., Any]) -> None:
    value = torch.ones(3)
    same, view, more = compiled(lambda x: (x, x[1:], x + 1))(value)
    value.mul_(5)
    assert same.tolist() == [5, 5, 5] and view.tolist() == [5, 5] and more.tolist() == [2, 2, 2]


@torch.no_grad()
def test_writes_in_place_reach_the_input(compiled: Callable[..., Any]) -> None:
    def function(x: Any, y: Any) -> Any:
        x.add_(1)
        y[:, 0] = 7
        return x * y

    values, others = [torch.ones(2, 3), torch.ones(2, 3)], [torch.ones(2, 3), torch.ones(2, 3)]
    torch.testing.assert_close(compiled(function)(*values), function(*others))
    for found, wanted in zip(values, others, strict=True):
        torch.testing.assert_close(found, wanted)


@torch.no_grad()
@pytest.mark.parametrize("make", [
    lambda: torch.randn(6, 4).t(),
    lambda: torch.randn(4, 12)[:, ::2],
    lambda: torch.randn(4, 1).expand(4, 6),
    lambda: torch.randn(25)[1:].reshape(4, 6),
])  # fmt: skip
def test_inputs_need_be_neither_contiguous_nor_aligned(
    compiled: Callable[..., Any], make: Callable[[], Any]
) -> None:
    value = make()
    torch.testing.assert_close(compiled(lambda x: x.exp() + 1)(value), value.exp() + 1)


@torch.no_grad()
def test_results_have_the_strides_of_eager(compiled: Callable[..., Any]) -> None:
    """What follows in the program may look at them."""
    value = torch.randn(2, 3, 4)
    found = compiled(lambda x: (x + 1).permute(2, 0, 1))(value)
    torch.testing.assert_close(found, (value + 1).permute(2, 0, 1))
    assert found.stride() == (value + 1).permute(2, 0, 1).stride()


@torch.no_grad()
def test_results_may_be_none_numbers_and_scalars(compiled: Callable[..., Any]) -> None:
    call = compiled(
        lambda x: {"none": None, "size": x.shape[0], "sum": x.sum(), "flag": x > 0, "int": x.long()}
    )
    found = call(torch.tensor([1.0, -2.0, 3.0]))
    assert found["none"] is None and found["size"] == 3 and found["sum"].item() == 2.0
    assert found["flag"].tolist() == [True, False, True] and found["int"].dtype == torch.int64


@torch.no_grad()
def test_an_empty_input(compiled: Callable[..., Any]) -> None:
    found = compiled(lambda x: (x * 2, x.sum()))(torch.empty(0, 3))
    assert found[0].shape == (0, 3) and found[1].item() == 0


@torch.no_grad()
def test_graph_breaks(compiled: Callable[..., Any]) -> None:
    def function(x: Any) -> Any:
        y = x * 2
        torch._dynamo.graph_break()
        return y + 1 if y.sum() > 0 else y - 1

    call = compiled(function)
    assert call(torch.ones(3)).tolist() == [3, 3, 3] and call(-torch.ones(3)).tolist() == [-3, -3, -3]


@torch.no_grad()
def test_several_threads_call_at_once(compiled: Callable[..., Any]) -> None:
    call = compiled(lambda x: (x @ x).relu() + x)
    values = [torch.randn(32, 32) for _ in range(4)]
    call(values[0])
    wrong: list[int] = []

    def work(number: int) -> None:
        wanted = (values[number] @ values[number]).relu() + values[number]
        for _ in range(50):
            if not torch.allclose(call(values[number]), wanted, atol=1e-4):
                wrong.append(number)

    in_threads(work, range(4))
    assert not wrong


@torch.no_grad()
def test_mixed_precision_keeps_the_types_of_results(compiled: Callable[..., Any]) -> None:
    layer = nn.Linear(64, 64)
    value = torch.randn(4, 64)
    found = compiled(layer, {"mixed_precision": "bfloat16"})(value)
    assert found.dtype == torch.float32
    difference = (found - layer(value)).abs().max()
    assert 0 < difference < 0.05


@torch.no_grad()
def test_casts_that_decompositions_make(compiled: Callable[..., Any]) -> None:
    """They are an operator of their own, ``prims::convert_element_type``."""
    function = lambda x: torch.ops.prims.convert_element_type(x, torch.int32) + 1
    assert compiled(function)(torch.tensor([1.5, -2.5])).tolist() == [2, -1]


@torch.no_grad()
def test_a_branch_that_depends_on_a_value_is_compiled(compiled: Callable[..., Any]) -> None:
    """The graph executor has no branches: such a graph runs on the virtual machine."""

    def function(choice: Any, x: Any) -> Any:
        return torch.cond(choice, lambda value: value * 2 + x.sum(), lambda value: value - 1, (x,))

    call = compiled(function, fullgraph=True)
    value = torch.tensor([1.0, 2.0, 3.0])
    assert call(torch.tensor(True), value).tolist() == [8, 10, 12]
    assert call(torch.tensor(False), value).tolist() == [0, 1, 2]
