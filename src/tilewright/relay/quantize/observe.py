"""Runs a program on a user's data and hands over what chosen expressions inside it are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.contrib.graph_executor import GraphModule
from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.relay.analysis import free_vars
from tilewright.relay.build_module import build
from tilewright.relay.expr import Tuple, Var
from tilewright.relay.function import Function
from tilewright.runtime.device import cpu
from tilewright.runtime.ndarray import NDArray
from tilewright.support.errors import ModelError
from tilewright.target import Target

Array = np.ndarray[Any, Any]
Sample = Mapping[str, Any]
"""The inputs of one run by name."""


class Observed:
    """A compiled program whose results are expressions of a function."""

    def __init__(self, params: Sequence[Var], observed: Sequence[RelayExpr], target: Any = None) -> None:
        if not observed:
            raise ModelError("there is no tensor to observe")
        results = Tuple(list(observed))
        used = set(free_vars(results))
        params = [one for one in params if one in used]
        module = IRModule.from_expr(Function(params, results))
        # The clean context: what is calibrated is the program itself, whoever calls.
        with PassContext(opt_level=3):
            library = build(module, Target("llvm") if target is None else target)
        self.executor = GraphModule(library["default"](cpu(0)))
        self.names = {one.name_hint for one in params}
        self.kept: set[str] = set()
        self.count = len(observed)

    def keep(self, name: str, value: Any) -> None:
        """Set an input for all runs that follow."""
        self.executor.set_input(name, value if isinstance(value, NDArray) else np.asarray(value))
        self.kept.add(name)

    def run(self, sample: Sample) -> list[Array]:
        """The values for one sample."""
        needed = self.names - self.kept
        missing = sorted(needed - set(sample))
        if missing:
            raise ModelError(
                f"a sample lacks the input {', '.join(missing)}: it has {', '.join(sorted(sample)) or 'none'}"
            )
        for name in needed:
            value = sample[name]
            self.executor.set_input(name, value if isinstance(value, NDArray) else np.asarray(value))
        self.executor.run()
        return [self.executor.get_output(place).numpy() for place in range(self.count)]

    def runs(self, samples: Iterable[Sample]) -> Iterator[list[Array]]:
        """The values for each sample, one after the other."""
        for sample in samples:
            yield self.run(sample)
