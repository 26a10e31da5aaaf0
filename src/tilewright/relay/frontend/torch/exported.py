"""From what ``torch.export`` makes to a module and its parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.relay.expr import Var
from tilewright.relay.frontend.common import check_input_names, require_supported
from tilewright.relay.frontend.common.finishing import finished
from tilewright.relay.frontend.torch.aliasing import needs_functionalization
from tilewright.relay.frontend.torch.arrays import array_of
from tilewright.relay.frontend.torch.complex_pair import ComplexPair
from tilewright.relay.frontend.torch.control_flow import HIGHER_ORDER
from tilewright.relay.frontend.torch.decomposition import with_definitions
from tilewright.relay.frontend.torch.dtypes import dtype_name
from tilewright.relay.frontend.torch.graph import GraphImporter, flat_outputs, list_unsupported
from tilewright.relay.frontend.torch.importing import Weights, input_variable
from tilewright.relay.frontend.torch.node import Scope
from tilewright.relay.frontend.torch.package import torch_package
from tilewright.runtime.ndarray import NDArray
from tilewright.support.errors import ModelError
from tilewright.support.recursion import recursion_room


def from_exported_program(
    program: Any, shape: Mapping[str, Sequence[int | None]] | None = None, *, freeze_params: bool = False
) -> tuple[IRModule, dict[str, NDArray]]:
    """A module and its parameters from a ``torch.export.ExportedProgram``.

    The parameters of ``main`` are the program's inputs, under the names of their placeholders, and after them the
    weights that it uses, under their names in ``state_dict``; weights share their memory with the program's where
    they are contiguous and on the CPU. With ``freeze_params`` weights are constants of the module instead. Dimensions
    that are dynamic in the program stay open, and the module then needs the virtual machine; ``shape`` fixes them, by
    the names of inputs.

    The results are the program's, nested ones flattened in PyTorch's order, and after them the new values of the
    buffers and inputs that the program writes to, named ``mutated.`` and the buffer or input. A program with operators
    that cannot be converted raises one error that names all of them.
    """
    torch = torch_package()
    if not isinstance(program, torch.export.ExportedProgram):
        raise ModelError(
            "from_exported_program takes what torch.export.export(model, inputs) returns, "
            f"not a {type(program).__name__}"
        )
    if needs_functionalization(program.graph):
        program = program.run_decompositions({})
    program = with_definitions(program)
    require_supported(list_unsupported(program.graph_module, HIGHER_ORDER))
    module = IRModule()
    scope = Scope(module, dtype_name(torch.get_default_dtype()))
    weights = Weights(scope, freeze_params)
    values, inputs = _inputs(program, weights, dict(shape or {}))
    with recursion_room():
        results = flat_outputs(GraphImporter(program.graph_module, scope, HIGHER_ORDER).convert(values))
        outputs, names = _outputs(program, results)
        return finished(module, inputs, outputs, names, weights.values)


def _inputs(
    program: Any, weights: Weights, shapes: dict[str, Sequence[int | None]]
) -> tuple[list[Any], list[Var]]:
    """The values of the placeholders, and those among them that are inputs of the module."""
    torch = torch_package()
    kinds = torch.export.graph_signature.InputKind
    placeholders = [node for node in program.graph.nodes if node.op == "placeholder"]
    specs = program.graph_signature.input_specs
    named = [spec.arg.name for spec in specs if spec.kind == kinds.USER_INPUT]
    check_input_names(shapes, named, named)
    mutated = set(program.graph_signature.buffers_to_mutate.values())
    values: list[Any] = []
    inputs: list[Var] = []
    for node, spec in zip(placeholders, specs, strict=True):
        if spec.kind == kinds.USER_INPUT:
            if isinstance(spec.arg, torch.export.graph_signature.ConstantArgument):
                values.append(spec.arg.value)
                continue
            variable = input_variable(node.name, node.meta["val"], shapes.get(node.name))
            if not hasattr(node.meta["val"], "shape"):
                weights.scope.numbers.add(variable)
            inputs.append(variable)
            values.append(variable)
        elif spec.kind in (kinds.PARAMETER, kinds.BUFFER, kinds.CONSTANT_TENSOR):
            tensor = program.state_dict.get(spec.target)
            tensor = program.constants[spec.target] if tensor is None else tensor
            values.append(_weight(weights, spec.target, tensor, spec.target in mutated, node))
        elif spec.kind == kinds.TOKEN:
            values.append(None)
        else:
            raise ModelError(
                f"the program takes {spec.target!r}, an object of TorchScript, which is not supported"
            )
    return values, inputs


def _weight(
    weights: Weights, name: str, tensor: Any, is_written: bool, node: Any
) -> RelayExpr | ComplexPair | None:
    if not node.users:
        return None
    if not is_written:
        return weights.add(name, tensor)
    # A buffer that the program changes is never a constant: the caller hands in its new value next time.
    made = weights.add_parameter(name, array_of(tensor, f"the tensor {name!r}"))
    weights.scope.param_values.pop(made)
    return made


def _outputs(program: Any, results: Sequence[RelayExpr | None]) -> tuple[list[RelayExpr], list[str]]:
    """The results and their names: the program's own, then what it writes to."""
    torch = torch_package()
    kinds = torch.export.graph_signature.OutputKind
    own: list[tuple[str, RelayExpr]] = []
    written: list[tuple[str, RelayExpr]] = []
    labels = iter(_output_labels(program))
    for spec, value in zip(program.graph_signature.output_specs, results, strict=True):
        if spec.kind == kinds.USER_OUTPUT:
            label = next(labels, "") or spec.arg.name
            if value is not None:
                own.append((label, value))
        elif value is not None and spec.kind != kinds.TOKEN:
            written.append((f"mutated.{spec.target}", value))
    if not own and not written:
        raise ModelError("the program has no result that is a tensor")
    pairs = _unique([*own, *written])
    return [value for _, value in pairs], [label for label, _ in pairs]


def _output_labels(program: Any) -> list[str]:
    """The places of the results in the model's nested result: "logits", "past.0"; none for a result that is not
    nested."""
    structure = program.call_spec.out_spec
    if structure is None or structure.is_leaf():
        return []
    found = [".".join(path) for path in _paths(structure)]
    # A position says less than what made the result.
    return ["" if label.isdecimal() else label for label in found]


def _paths(structure: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The way to each leaf of a nested value: the keys of dictionaries and of what is like them, else positions."""
    if structure.is_leaf():
        yield path
        return
    children = structure.children()
    keys = structure.context
    if not isinstance(keys, (list, tuple)) or len(keys) != len(children):
        keys = getattr(structure.type, "_fields", range(len(children)))
    for key, child in zip(keys, children, strict=False):
        yield from _paths(child, (*path, str(key)))


def _unique(pairs: Sequence[tuple[str, RelayExpr]]) -> list[tuple[str, RelayExpr]]:
    """Labelled results; a label that is there already gets a number."""
    seen: dict[str, int] = {}
    found = []
    for label, value in pairs:
        count = seen.get(label, 0)
        seen[label] = count + 1
        found.append((f"{label}_{count}" if count else label, value))
    return found
