"""AOTAutograd's wrapper is left out where it has nothing to do, and kept where it has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tilewright.driver.torch_backend import shortcut  # noqa: E402


@pytest.fixture
def wrapped_calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many arguments each call that went through the wrapper had."""
    seen: list[int] = []
    original = shortcut.Shortcut.around

    def around(self: Any, wrapper: Callable[..., Any]) -> Callable[..., Any]:
        return original(self, lambda *arguments: seen.append(len(arguments)) or wrapper(*arguments))

    monkeypatch.setattr(shortcut.Shortcut, "around", around)
    return seen


def test_only_the_first_call_goes_through_an_idle_wrapper(
    compiled: Callable[..., Any], wrapped_calls: list[int]
) -> None:
    layer = torch.nn.Linear(4, 4).eval().requires_grad_(False)
    call, value = compiled(layer), torch.randn(2, 4)
    for _ in range(3):
        torch.testing.assert_close(call(value), layer(value))
    assert wrapped_calls == [3]


@torch.no_grad()
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.add_(1) * 2,
        lambda x: (x, x + 1),
        lambda x: x[1:],
        lambda x: ((x + 1).view(-1), x * 2),
    ],
    ids=["write", "input", "view of an input", "view of a value"],
)
def test_a_wrapper_with_work_to_do_stays(
    compiled: Callable[..., Any], function: Callable[[Any], Any]
) -> None:
    """In the third call as in the first: what is written to, and which results share memory with what."""
    call = compiled(function)
    for _ in range(3):
        value, other = torch.arange(6.0).reshape(2, 3), torch.arange(6.0).reshape(2, 3)
        found, wanted = call(value), function(other)
        torch.testing.assert_close(found, wanted)
        torch.testing.assert_close(value, other)
        results = [found] if isinstance(found, torch.Tensor) else list(found)
        expected = [wanted] if isinstance(wanted, torch.Tensor) else list(wanted)
        memory = [one.untyped_storage().data_ptr() for one in [value, *results]]
        its_memory = [one.untyped_storage().data_ptr() for one in [other, *expected]]
        assert [memory.index(one) for one in memory] == [its_memory.index(one) for one in its_memory]


def test_results_need_no_gradient_with_the_gradient_mode_on(compiled: Callable[..., Any]) -> None:
    call = compiled(lambda x: (x + 1).exp())
    for _ in range(3):
        assert torch.is_grad_enabled() and not call(torch.ones(3)).requires_grad


@torch.no_grad()
def test_pieces_that_pytorch_runs_are_as_under_the_wrapper(
    compiled: Callable[..., Any], wrapped_calls: list[int]
) -> None:
    """Autocast has been applied when the graph was captured: it is off where the graph runs."""
    layer = torch.nn.Linear(4, 4)
    call, value = compiled(layer), torch.randn(2, 4)
    for _ in range(3):
        with torch.autocast("cpu", torch.bfloat16):
            assert call(value).dtype == torch.bfloat16
    assert len(wrapped_calls) == 3


@torch.no_grad()
def test_the_default_device_is_not_where_results_lie(compiled: Callable[..., Any]) -> None:
    call, value = compiled(lambda x: x * 2), torch.ones(3)
    with torch.device("meta"):
        for _ in range(2):
            assert call(value).tolist() == [2, 2, 2]
