"""Parameters as constants for as long as they stay as they are."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import torch

Runner = Callable[[list[Any]], list[Any]]

_MOST_CHANGES = 1
"""A weight that changes more often than that is an input from then on."""

_MOST_SETS = 64
"""A graph may be called with the weights of several modules of the same code, such as the blocks of a transformer."""

_version = attrgetter("_version")


class WeightedRunner:
    """Calls a graph that was compiled with the values of its weights.

    PyTorch counts the changes of a tensor. Each call compares the weights and their counts with those that the code was
    made for. After a change the code is made again; weights that keep changing become inputs.
    """

    def __init__(
        self,
        names: Sequence[str],
        weights: Sequence[int],
        build: Callable[[Mapping[str, torch.Tensor]], Runner],
    ) -> None:
        """``build`` makes code for weights by name; ``weights`` are the positions of the arguments that are weights."""
        self._names = names
        self._weights = list(weights)
        self._build = build
        self._made: list[_Frozen] = []
        self._changes: Counter[int] = Counter()
        self._lock = threading.Lock()

    def __call__(self, arguments: list[Any]) -> list[Any]:
        """The results for the arguments of the graph."""
        made = self._made
        if made and made[0].fits(arguments):
            return made[0].runner(arguments)
        with self._lock:
            runner = self._find(arguments)
        return runner(arguments)

    def _find(self, arguments: list[Any]) -> Runner:
        for place, frozen in enumerate(self._made):
            if frozen.fits(arguments):
                self._made = [frozen, *self._made[:place], *self._made[place + 1 :]]
                return frozen.runner
        kept = []
        for frozen in self._made:
            if frozen.has(arguments):
                # The same tensors with other values: what was made of them is of no use any more.
                self._changes.update(frozen.changed())
            else:
                kept.append(frozen)
        if len(kept) >= _MOST_SETS:
            self._weights = []
        chosen = [
            position
            for position in self._weights
            if self._changes[position] <= _MOST_CHANGES and _is_counted(arguments[position])
        ]
        with torch.no_grad():
            runner = self._build({self._names[position]: arguments[position].detach() for position in chosen})
        self._made = [_Frozen(chosen, [arguments[position] for position in chosen], runner), *kept]
        return runner


def _is_counted(tensor: torch.Tensor) -> bool:
    """Tensors made in inference mode do not count their changes."""
    return not tensor.is_inference()


class _Frozen:
    """Code, the weights that are part of it, and their counts."""

    def __init__(self, positions: list[int], weights: list[torch.Tensor], runner: Runner) -> None:
        self.runner = runner
        self._positions = positions
        self._weights = weights
        self._versions = list(map(_version, weights))
        self._addresses = [weight.data_ptr() for weight in weights]

    def fits(self, arguments: list[Any]) -> bool:
        """True if the code is right for these arguments."""
        return self.has(arguments) and list(map(_version, self._weights)) == self._versions

    def has(self, arguments: list[Any]) -> bool:
        """True if the code was made for these tensors."""
        for position, weight, address in zip(self._positions, self._weights, self._addresses, strict=True):
            given = arguments[position]
            if given is not weight or given.data_ptr() != address:
                return False
        return True

    def changed(self) -> list[int]:
        """The positions of the weights that have changed."""
        pairs = zip(self._positions, self._weights, self._versions, strict=True)
        return [position for position, weight, version in pairs if weight._version != version]
