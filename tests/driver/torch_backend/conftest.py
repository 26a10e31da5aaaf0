"""Every test of the backend starts with nothing compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """A seed, and no graphs of earlier tests."""
    torch.manual_seed(0)
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    yield
    torch._dynamo.reset()


@pytest.fixture
def compiled() -> Callable[..., Any]:
    """``torch.compile`` with this backend; what cannot be compiled is an error unless the options say otherwise."""
    from tilewright.driver.torch_backend import tilewright

    def compile(model: Any, options: dict[str, Any] | None = None, **more: Any) -> Any:
        return torch.compile(
            model, backend=tilewright, options={"fallback": False, **(options or {})}, **more
        )

    return compile
