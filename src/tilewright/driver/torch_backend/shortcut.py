"""The way past AOTAutograd's wrapper of an inference graph, where the wrapper has nothing to do.

The wrapper writes to inputs, makes views of results and unwraps subclasses of tensors. What it does is fixed when it is
made; for most models it is nothing, and its layers of Python cost a call tens of microseconds once the model has
driven them out of the caches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_
from typing import Any

import torch

Boxed = Callable[[list[Any]], list[Any]]

_DEVICES = ("cpu", "cuda")


class Shortcut:
    """Watches what the wrapper does in the first call of a graph, and leaves it out from then on if it handed every
    argument to the graph and every result back.

    That decides for all calls: TorchDynamo's guards have the sizes, the gradient mode and the state of autocast be
    those of the first call.
    """

    def __init__(self) -> None:
        self._graph: Boxed | None = None
        self._seen: tuple[list[Any], list[Any]] | None = None

    def watched(self, graph: Boxed) -> Boxed:
        """The graph as the wrapper shall call it."""

        def call(arguments: list[Any]) -> list[Any]:
            given = arguments.copy()
            results = graph(arguments)
            self._seen = given, list(results)
            arguments.clear()
            return results

        self._graph = graph
        call._boxed_call = True  # type: ignore[attr-defined]
        return call

    def around(self, wrapper: Callable[..., Any]) -> Callable[..., Any]:
        """A function like the wrapper, which calls the graph by itself where that is the same."""
        graph = self._graph
        if graph is None:
            return wrapper
        current: Callable[..., Any] | None = None

        def without_wrapper(*arguments: Any) -> Any:
            if torch.is_grad_enabled():
                with torch.no_grad():
                    return graph(list(arguments))
            return graph(list(arguments))

        def first(*arguments: Any) -> Any:
            nonlocal current
            had_gradients = torch.is_grad_enabled()
            results = wrapper(*arguments)
            seen, self._seen = self._seen, None
            if seen is not None and current is None:
                is_idle = _are_same(seen[0], arguments) and _are_same(seen[1], results)
                is_idle = is_idle and torch.is_grad_enabled() == had_gradients and not _casts()
                current = without_wrapper if is_idle else wrapper
            return results

        def call(*arguments: Any) -> Any:
            return first(*arguments) if current is None else current(*arguments)

        return call


def _are_same(one: Sequence[Any], other: Any) -> bool:
    """True if two sequences have the same objects."""
    return isinstance(other, (list, tuple)) and len(one) == len(other) and all(map(is_, one, other))


def _casts() -> bool:
    """True under autocast, which the wrapper turns off for what the graph leaves to PyTorch."""
    return any(map(torch.is_autocast_enabled, _DEVICES))
