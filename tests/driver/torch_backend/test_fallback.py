"""What cannot be compiled is left to PyTorch, with one warning that names it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tilewright.relay.frontend.common import UnsupportedOperators  # noqa: E402


@pytest.fixture(scope="module")
def strange() -> Any:
    """An operator that nobody has a converter for."""
    library = torch.library.Library("tilewright_test", "FRAGMENT")
    library.define("strange(Tensor x) -> Tensor")
    library.impl("strange", lambda x: x.flip(0) * 3, "CompositeExplicitAutograd")
    yield torch.ops.tilewright_test.strange
    library._destroy()


@torch.no_grad()
def test_the_pieces_around_an_operator_are_compiled(compiled: Callable[..., Any], strange: Any) -> None:
    weight = torch.nn.Parameter(torch.randn(4, 4))

    def function(x: Any) -> Any:
        y = (x @ weight).relu()
        return strange(y) + y, strange(y * 2)

    value = torch.randn(3, 4)
    call = compiled(function, {"fallback": True})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            for found, wanted in zip(call(value), function(value), strict=True):
                torch.testing.assert_close(found, wanted)
    left = [str(one.message) for one in caught if "leaves to PyTorch" in str(one.message)]
    assert len(left) == 1 and "tilewright_test::strange" in left[0]


@torch.no_grad()
def test_without_fallback_it_is_an_error_that_names_all(compiled: Callable[..., Any], strange: Any) -> None:
    with pytest.raises(
        torch._dynamo.exc.BackendCompilerFailed, match="tilewright_test::strange, 1"
    ) as caught:
        compiled(lambda x: strange(x) + 1)(torch.ones(3))
    assert isinstance(caught.value.inner_exception, UnsupportedOperators)
