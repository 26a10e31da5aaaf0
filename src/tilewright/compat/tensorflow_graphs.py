"""Names of TVM's ``relay.frontend.tensorflow`` beside ``from_tensorflow``: rewriting of parts of a graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tilewright.ir.module import IRModule
from tilewright.relay.expr import If, Var
from tilewright.relay.expr_functor import ExprMutator, ExprVisitor
from tilewright.relay.frontend.tensorflow import from_tensorflow
from tilewright.support.errors import ModelError

__all__ = [
    "Branch",
    "GraphProto",
    "RewriteSubgraph",
    "VarChecker",
    "find_parent_loop_name",
    "is_tensor_array_constuctor",
    "rewrite_subgraph",
]


def is_tensor_array_constuctor(tf_node: Any) -> bool:
    """True if a node makes a tensor array."""
    name = str(tf_node.op)
    return name.startswith("TensorArrayV") and name.removeprefix("TensorArrayV").isdigit()


def find_parent_loop_name(node_name: str, while_loop_name_set: Iterable[str]) -> str:
    """The innermost loop whose name is a prefix of a node's, empty if there is none."""
    scope = node_name.rpartition("/")[0] + "/"
    inside = [name for name in while_loop_name_set if scope.startswith(f"{name}/")]
    return max(inside, key=len, default="")


class RewriteSubgraph(ExprMutator):
    """Replaces the expressions of a map, wherever they are."""

    def __init__(self, rewrite_map: Mapping[Any, Any]) -> None:
        super().__init__()
        self.rewrite_map = dict(rewrite_map)

    def visit(self, expr: Any) -> Any:
        """The expression with all of them replaced."""
        return self.rewrite_map[expr] if expr in self.rewrite_map else super().visit(expr)


def rewrite_subgraph(expr: Any, rewrites: Mapping[Any, Any]) -> Any:
    """An expression in which others are replaced."""
    return RewriteSubgraph(rewrites).visit(expr)


class VarChecker(ExprVisitor):
    """Whether a variable is used: ``used`` after a visit."""

    def __init__(self, var: Var) -> None:
        super().__init__()
        self._var = var
        self.used = False

    def visit(self, expr: Any) -> None:
        """Look for it in an expression."""
        self.used = self.used or expr is self._var
        super().visit(expr)


class Branch:
    """A condition of a graph: ``cond``, and what it computes where that holds and where not."""

    def __init__(self) -> None:
        self.cond: Any = None
        self.true_branch: Any = None
        self.false_branch: Any = None
        self._made: If | None = None

    def if_node(self) -> If:
        """The condition as an expression, the same one each time."""
        if self._made is None:
            missing = [
                name for name in ("cond", "true_branch", "false_branch") if getattr(self, name) is None
            ]
            if missing:
                raise ModelError(f"the branch has no {' and no '.join(missing)}")
            self._made = If(self.cond, self.true_branch, self.false_branch)
        return self._made


class GraphProto:
    """The conversion of a graph as an object, which keeps the module and the parameters of the last one."""

    def __init__(self) -> None:
        self._mod = IRModule()
        self._params: dict[str, Any] = {}

    def from_tensorflow(
        self,
        graph: Any,
        layout: str | None = "NHWC",
        shape: Mapping[str, Any] | None = None,
        outputs: Sequence[str] | None = None,
    ) -> tuple[IRModule, dict[str, Any]]:
        """The module and the parameters of a graph."""
        self._mod, self._params = from_tensorflow(graph, layout, shape, outputs)
        return self._mod, self._params
