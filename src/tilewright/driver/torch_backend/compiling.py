"""One graph of ATen operators to something that can be called, whatever it takes."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from tilewright.driver.torch_backend.building import converted, place_of
from tilewright.driver.torch_backend.dynamic import MachineRunner, SpecializingRunner
from tilewright.driver.torch_backend.options import BackendOptions
from tilewright.driver.torch_backend.pieces import in_pieces
from tilewright.driver.torch_backend.shortcut import Shortcut
from tilewright.driver.torch_backend.signature import signature_of
from tilewright.driver.torch_backend.static import StaticRunner
from tilewright.driver.torch_backend.weights import WeightedRunner
from tilewright.relay.frontend.common import Unsupported, UnsupportedOperators
from tilewright.relay.frontend.torch.control_flow import HIGHER_ORDER
from tilewright.relay.frontend.torch.graph import list_unsupported, operator_name
from tilewright.support.errors import LoweringError, ModelError, TilewrightError

Runner = Callable[[list[Any]], list[Any]]
Weights = Mapping[str, torch.Tensor]


def compile_graph(
    graph_module: torch.fx.GraphModule,
    example_inputs: Sequence[Any],
    options: BackendOptions,
    weights: Sequence[int] = (),
    shortcut: Shortcut | None = None,
) -> Callable[..., Any]:
    """A function of the graph's inputs, in the form that AOTAutograd wants; inputs at the positions in ``weights`` are
    constants as long as they do not change. ``shortcut`` may call the graph past AOTAutograd's wrapper."""
    with _disable_current_modes():
        signature = signature_of(graph_module)
        if not signature.has_results:
            return _boxed(_Eager(graph_module))
        compiler = _GraphCompiler(options)
        runner: Runner
        if weights:
            build = lambda known: compiler.runner(graph_module, known)
            runner = WeightedRunner(signature.inputs, weights, build)
        else:
            runner = compiler.runner(graph_module, {})
        # With open sizes the wrapper marks dimensions of results.
        return shortcut.watched(runner) if shortcut and signature.is_static else _boxed(runner)


def _boxed(runner: Runner) -> Callable[[list[Any]], list[Any]]:
    """A function that may take the list of arguments apart."""

    def call(arguments: list[Any]) -> list[Any]:
        results = runner(arguments)
        arguments.clear()
        return results

    call._boxed_call = True  # type: ignore[attr-defined]
    return call


class _GraphCompiler:
    """Compiles graphs and pieces of them; what cannot be compiled is left to PyTorch."""

    def __init__(self, options: BackendOptions) -> None:
        self.options = options

    def runner(self, graph_module: torch.fx.GraphModule, weights: Weights) -> Runner:
        """What runs a graph, with these weights as constants. One warning names all that is left to PyTorch."""
        refused: dict[Any, str] = {}
        unsupported = list_unsupported(graph_module, HIGHER_ORDER)
        if unsupported:
            if not self.options.fallback:
                raise UnsupportedOperators(unsupported)
            refused = _targets(graph_module, unsupported)
        while True:
            try:
                made = self._pieces(graph_module, refused, weights)
                break
            except ModelError as error:
                target = _target_of(graph_module, error.node)
                if not self.options.fallback or target is None or target in refused:
                    made = self._eager(graph_module, error)
                    break
                refused[target] = f"{operator_name(target)} ({error.message})"
            except TilewrightError as error:
                made = self._eager(graph_module, error)
                break
        if refused and not isinstance(made, _Eager):
            _warn(", ".join(refused.values()))
        return made

    def _pieces(
        self, graph_module: torch.fx.GraphModule, refused: Collection[Any], weights: Weights
    ) -> Runner:
        if not refused:
            return self._whole(graph_module, weights)
        return in_pieces(copy.deepcopy(graph_module), refused, weights, self._whole)

    def _whole(self, graph_module: torch.fx.GraphModule, weights: Weights) -> Runner:
        signature = signature_of(graph_module)
        if not signature.has_results:
            return _Eager(graph_module)
        place = place_of(signature, self.options)
        if signature.is_static:
            module = converted(graph_module, signature, weights, self.options)
            try:
                return StaticRunner(module, signature, place, self.options)
            except LoweringError:
                # Branches and loops, which the graph executor does not have.
                return MachineRunner(module, signature, place, self.options)
        try:
            module = converted(graph_module, signature, weights, self.options)
            return MachineRunner(module, signature, place, self.options)
        except TilewrightError:
            # What needs to know its sizes is compiled when they are known.
            return SpecializingRunner(graph_module, lambda fixed: self.runner(fixed, {}))

    def _eager(self, graph_module: torch.fx.GraphModule, error: TilewrightError) -> Runner:
        if not self.options.fallback:
            raise error
        _warn(f"a graph of {len(graph_module.graph.nodes)} nodes ({error.message})")
        return _Eager(graph_module)


class _Eager:
    """A graph as PyTorch runs it."""

    def __init__(self, graph_module: torch.fx.GraphModule) -> None:
        self._forward = graph_module.forward

    def __call__(self, arguments: list[Any]) -> list[Any]:
        """The results for the arguments of the graph."""
        results = self._forward(*arguments)
        return list(results) if isinstance(results, (list, tuple)) else [results]


def _warn(what: str) -> None:
    warnings.warn(f"torch.compile(backend='tilewright') leaves to PyTorch: {what}", stacklevel=2)


def _targets(graph_module: torch.fx.GraphModule, unsupported: Sequence[Unsupported]) -> dict[Any, str]:
    """The operators that are not supported, with their names."""
    nodes = {name for one in unsupported for name in one.nodes}
    return {
        node.target: operator_name(node.target) for node in graph_module.graph.nodes if node.name in nodes
    }


def _target_of(graph_module: torch.fx.GraphModule, name: str | None) -> Any:
    """The operator of a node; None if there is no such node."""
    for node in graph_module.graph.nodes:
        if node.name == name and node.op == "call_function":
            return node.target
    return None
