"""A long short-term memory over trees: recursion on an algebraic data type (Tai et al., 2015, the child-sum form)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.ir.adt import Constructor
from tilewright.ir.base import RelayExpr
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import TupleType, Type
from tilewright.relay.adt import Clause, Match, PatternConstructor, PatternVar
from tilewright.relay.backend.interpreter import ConstructorValue
from tilewright.relay.expr import Tuple, TupleGetItem, Var
from tilewright.relay.function import Function
from tilewright.relay.op import nn
from tilewright.relay.op.tensor import sigmoid, tanh, zeros
from tilewright.relay.op.transform import split
from tilewright.relay.prelude import Prelude
from tilewright.relay.scope_builder import ScopeBuilder
from tilewright.relay.tensor_array import constructor_named
from tilewright.relay.testing.init import create_workload


def _parameters(input_size: int, memory_size: int, dtype: str) -> list[Var]:
    """Weights of the gates that see all children at once, then of the gate of each child."""
    made = []
    for name, gates in (("gates", 3), ("forget", 1)):
        rows = gates * memory_size
        made += [
            Var(f"{name}_input_weight", TensorType((rows, input_size), dtype)),
            Var(f"{name}_state_weight", TensorType((rows, memory_size), dtype)),
            Var(f"{name}_bias", TensorType((rows,), dtype)),
        ]
    return made


def _node(
    prelude: Prelude, recursion: GlobalVar, tree: Type, state: Type, size: tuple[int, int], dtype: str
) -> Function:
    """The function from a tree and the weights to the memory and the output of its root."""
    memory_size = size[1]
    parameters = _parameters(*size, dtype)
    gates_input, gates_state, gates_bias, forget_input, forget_state, forget_bias = parameters
    value, children, child = Var("value"), Var("children"), Var("child", tree)
    builder = ScopeBuilder()
    states = builder.let(
        "states", prelude.map(Function([child], recursion(child, *parameters), state), children)
    )
    forget = builder.let("forget", nn.bias_add(nn.dense(value, forget_input), forget_bias, axis=-1))
    total, one = Var("total", state), Var("one", state)
    kept = sigmoid(forget + nn.dense(TupleGetItem(one, 1), forget_state)) * TupleGetItem(one, 0)
    step = Tuple([TupleGetItem(total, 0) + kept, TupleGetItem(total, 1) + TupleGetItem(one, 1)])
    nothing = zeros((1, memory_size), dtype)
    sums = builder.let(
        "sums", prelude.foldl(Function([total, one], step, state), Tuple([nothing, nothing]), states)
    )
    mixed = nn.bias_add(nn.dense(value, gates_input), gates_bias, axis=-1) + nn.dense(
        TupleGetItem(sums, 1), gates_state
    )
    gates = builder.let("gates", split(mixed, indices_or_sections=3, axis=1).astuple())
    taken = sigmoid(TupleGetItem(gates, 0)) * tanh(TupleGetItem(gates, 2))
    memory = builder.let("memory", taken + TupleGetItem(sums, 0))
    builder.ret(Tuple([memory, sigmoid(TupleGetItem(gates, 1)) * tanh(memory)]))
    data = Var("data", tree)
    rose = constructor_named(prelude.mod, "Tree", "Rose")
    pattern = PatternConstructor(rose, [PatternVar(value), PatternVar(children)])
    return Function([data, *parameters], Match(data, [Clause(pattern, builder.get())]), state)


def get_net(input_size: int = 8, memory_size: int = 8, dtype: str = "float32") -> IRModule:
    """A module whose ``main`` takes a tree of tensors (1, input_size), called "data", and the weights, and gives the
    memory and the output of the root."""
    module = IRModule()
    prelude = Prelude(module)
    tree = module.get_global_type_var("Tree")(TensorType((1, input_size), dtype))
    part = TensorType((1, memory_size), dtype)
    state = TupleType([part, part])
    recursion = GlobalVar("tree_lstm")
    size = (input_size, memory_size)
    module[recursion] = _node(prelude, recursion, tree, state, size, dtype)
    data, parameters = Var("data", tree), _parameters(*size, dtype)
    module["main"] = Function([data, *parameters], recursion(data, *parameters), state)
    return module


def get_workload(
    input_size: int = 8, memory_size: int = 8, dtype: str = "float32"
) -> tuple[IRModule, dict[str, Any]]:
    """The module, and values for its parameters."""
    return create_workload(get_net(input_size, memory_size, dtype))


NestedTree = tuple[Any, Sequence[Any]]
"""A node's value, and its children, which are nested trees."""


def _made(module: IRModule, tree: NestedTree, make: Callable[[Constructor, list[Any]], Any]) -> Any:
    rose = constructor_named(module, "Tree", "Rose")
    cons = constructor_named(module, "List", "Cons")
    nil = constructor_named(module, "List", "Nil")

    def build(node: NestedTree) -> Any:
        value, children = node
        chain = make(nil, [])
        for child in reversed(children):
            chain = make(cons, [build(child), chain])
        return make(rose, [value, chain])

    return build(tree)


def make_tree_value(module: IRModule, tree: NestedTree) -> ConstructorValue:
    """The value, for an executor, of a tree given as nested Python tuples."""
    made = _made(
        module, tree, lambda constructor, fields: ConstructorValue(constructor.tag, fields, constructor)
    )
    assert isinstance(made, ConstructorValue)
    return made


def make_tree_expr(module: IRModule, tree: NestedTree) -> RelayExpr:
    """The expression of a tree given as nested Python tuples of expressions."""
    made = _made(module, tree, lambda constructor, fields: constructor(*fields))
    assert isinstance(made, RelayExpr)
    return made
