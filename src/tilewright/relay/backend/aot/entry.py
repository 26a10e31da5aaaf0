"""The functions around the kernels, as loop programs, which every code generator compiles.

* The *body* takes a pointer for each input and output, the constants and the workspace, and calls kernel after kernel.
* The *C entry*, ``tilewright_<name>_run``, takes structures of pointers, and checks that none is NULL or misaligned.
* The *packed entry*, ``__tvm_ffi_<name>``, takes tensors, and checks their shapes and types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tilewright.codegen.c.names import Names
from tilewright.ir import operators
from tilewright.ir.buffer import decl_buffer
from tilewright.ir.expr import Call, Load, PrimExpr, Var
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import PrimType
from tilewright.relay.backend.aot.kernels import FAILED, Kernel, find_kernel
from tilewright.relay.backend.aot.plan import MemoryPlan, Place, Region
from tilewright.relay.backend.graph import ExecutorGraph, GraphNode, byte_size
from tilewright.relay.backend.places import results
from tilewright.support.arena import ALIGNMENT
from tilewright.support.errors import ModelError
from tilewright.target import Target
from tilewright.tir.function import PrimFunc
from tilewright.tir.packed_abi import address_of, is_null, message
from tilewright.tir.stmt import NO_OP, AssertStmt, Evaluate, IfThenElse, LetStmt, Stmt, stmt_seq
from tilewright.tir.transform.make_packed_api import make_packed_api

INVALID_ARGUMENT = -2
"""What the C entry returns for a pointer that is NULL or misaligned."""


@dataclass(frozen=True)
class Argument:
    """An input or output of the model, as C sees it."""

    name: str
    tensor: TensorType
    alignment: int

    @property
    def num_bytes(self) -> int:
        """The size in memory."""
        return byte_size(self.tensor)


@dataclass
class ModelFunctions:
    """What the entry points of one model share."""

    name: str
    graph: ExecutorGraph
    plan: MemoryPlan
    kernels: Mapping[str, Kernel]
    kernel_symbols: Mapping[str, str]
    embed_constants: bool
    inputs: list[Argument] = field(init=False)
    outputs: list[Argument] = field(init=False)

    def __post_init__(self) -> None:
        alignments = self._alignments()
        nodes, plan = self.graph.nodes, self.plan
        names = Names()
        self.inputs = [
            Argument(
                names.fresh(nodes[number].name or "input"),
                nodes[number].outputs[0],
                alignments[Place(Region.INPUT, position)],
            )
            for position, number in enumerate(plan.inputs)
        ]
        self.outputs = [
            Argument(
                names.fresh(self._output_name(position)),
                self.graph.type_of(entry),
                alignments[Place(Region.OUTPUT, position)],
            )
            for position, entry in enumerate(self.graph.outputs)
        ]

    def _output_name(self, position: int) -> str:
        """The model's name of an output; TVM's where it has none."""
        if self.graph.output_names:
            return self.graph.output_names[position]
        return "output" if len(self.graph.outputs) == 1 else f"output{position}"

    @property
    def body_symbol(self) -> str:
        """The internal function that runs the kernels."""
        return f"tilewright_{self.name}_body"

    @property
    def entry_symbol(self) -> str:
        """The function that C calls."""
        return f"tilewright_{self.name}_run"

    @property
    def constants_symbol(self) -> str:
        """The internal function that returns the address of embedded constants."""
        return f"tilewright_{self.name}_constants"

    @property
    def takes_constants(self) -> bool:
        """True if the caller passes the constants."""
        return bool(self.plan.constants) and not self.embed_constants

    def _alignments(self) -> dict[Place, int]:
        """Bytes to which the caller's tensors must be aligned: what their elements and every kernel need."""
        found: dict[Place, int] = {}
        for entry, place in self.plan.places.items():
            whole = replace(place, offset=0)
            found[whole] = max(found.get(whole, 1), self.graph.type_of(entry).dtype.itemsize)
        for position, entry in enumerate(self.graph.outputs):
            place = Place(Region.OUTPUT, position)
            found.setdefault(place, self.graph.type_of(entry).dtype.itemsize)
        for number, node in self._calls():
            kernel = find_kernel(self.kernels, node)
            for position, entry in enumerate((*node.inputs, *results(number, node))):
                place, alignment = self.plan.places[entry], kernel.alignment(position)
                inside = place.offset if place.region in (Region.INPUT, Region.OUTPUT) else place.position
                if inside % alignment:
                    raise ModelError(
                        f"the graph's node {node.name!r} has an argument {inside} bytes into its memory; its kernel "
                        f"needs it aligned to {alignment}"
                    )
                whole = replace(place, offset=0)
                found[whole] = max(found[whole], alignment)
        return found

    def _calls(self) -> list[tuple[int, GraphNode]]:
        """The nodes that run a kernel, with their numbers."""
        return [
            (number, node)
            for number, node in enumerate(self.graph.nodes)
            if node.kernel is not None and not node.is_view
        ]

    # ---- the body ----

    def body(self) -> PrimFunc:
        """The function that runs every kernel in order, and stops at the first that fails."""
        inputs = [Var(argument.name, "handle") for argument in self.inputs]
        outputs = [Var(argument.name, "handle") for argument in self.outputs]
        constants, workspace = Var("constants", "handle"), Var("workspace", "handle")

        def pointer(place: Place) -> PrimExpr:
            if place.region in (Region.INPUT, Region.OUTPUT):
                tensor = (inputs if place.region is Region.INPUT else outputs)[place.position]
                return _untyped(address_of(tensor, "uint8", place.offset)) if place.offset else tensor
            memory = constants if place.region is Region.CONSTANT else workspace
            return _untyped(address_of(memory, "uint8", place.position))

        steps: list[Stmt] = []
        for number, node in self._calls():
            arguments = [pointer(self.plan.places[entry]) for entry in (*node.inputs, *results(number, node))]
            if number in self.plan.scratch:
                arguments.append(pointer(Place(Region.WORKSPACE, self.plan.scratch[number])))
            status = _call(self.kernel_symbols[str(node.kernel)], arguments)
            steps.append(IfThenElse(operators.not_equal(status, 0), _return(FAILED)))
        for entry, position in self.plan.copies:
            size = operators.const(byte_size(self.graph.type_of(entry)), "uint64")
            source = pointer(self.plan.places[entry])
            steps.append(
                Evaluate(operators.call("call_extern", "handle", ["memcpy", outputs[position], source, size]))
            )
        regions = ([constants] if self.plan.constants else []) + (
            [workspace] if self.plan.workspace_size else []
        )
        return PrimFunc([*inputs, *outputs, *regions], stmt_seq(*steps, _return(0)), PrimType("int32"))

    def _regions(self, constants: PrimExpr | None, workspace: PrimExpr | None) -> list[PrimExpr]:
        """What the body takes after inputs and outputs; constants that are not passed are inside the artefact."""
        passed: list[PrimExpr] = []
        if self.plan.constants:
            own = operators.call("call_extern", "handle", [self.constants_symbol])
            passed.append(own if constants is None else constants)
        return passed if workspace is None else [*passed, workspace]

    # ---- the entries ----

    def c_entry(self) -> PrimFunc:
        """``tilewright_<name>_run``."""
        inputs, outputs = Var("inputs", "handle"), Var("outputs", "handle")
        constants, workspace = Var("constants", "handle"), Var("workspace", "handle")
        params = [inputs, outputs, *([constants] if self.takes_constants else []), workspace]
        pointers: list[tuple[Var, PrimExpr]] = []
        checks: list[Stmt] = []
        for structure, arguments in ((inputs, self.inputs), (outputs, self.outputs)):
            for position, argument in enumerate(arguments):
                variable = Var(argument.name, "handle")
                pointers.append((variable, Load("handle", structure, position)))
                # A tensor without elements needs no memory.
                if argument.num_bytes:
                    checks.append(_require(variable, argument.alignment))
        checks += [_require(constants, ALIGNMENT)] if self.takes_constants else []
        checks += [_require(workspace, ALIGNMENT)] if self.plan.workspace_size else []
        regions = self._regions(
            constants if self.takes_constants else None, workspace if self.plan.workspace_size else None
        )
        passed = [*(variable for variable, _ in pointers), *regions]
        status = Evaluate(operators.call("ret", "int32", [_call(self.body_symbol, passed)]))
        body: Stmt = stmt_seq(*checks, status)
        for variable, value in reversed(pointers):
            body = LetStmt(variable, value, body)
        # A model without inputs may be called with NULL in the place of the structure.
        if self.inputs:
            body = stmt_seq(_require(inputs, 1), body)
        body = stmt_seq(_require(outputs, 1), body)
        return PrimFunc(params, body, PrimType("int32"), attrs={"global_symbol": self.entry_symbol})

    def packed_entry(self, target: Target) -> PrimFunc:
        """``__tvm_ffi_<name>``: inputs, outputs, then the caller's constants and workspace where there are any."""
        buffers = [
            decl_buffer(
                argument.tensor.shape,
                argument.tensor.dtype,
                argument.name,
                data_alignment=argument.alignment,
            )
            for argument in (*self.inputs, *self.outputs)
        ]
        passed: list[PrimExpr] = [buffer.data for buffer in buffers]
        sizes = {
            "constants": self.plan.constants_size if self.takes_constants else 0,
            "workspace": self.plan.workspace_size,
        }
        regions = {name: decl_buffer((size,), "uint8", name) for name, size in sizes.items() if size}
        buffers += regions.values()
        pointers = {name: buffer.data for name, buffer in regions.items()}
        passed += self._regions(pointers.get("constants"), pointers.get("workspace"))
        status = Var("status", "int32")
        failed = message("RuntimeError", f"a kernel of the model {self.name} failed")
        body: Stmt = AssertStmt(operators.equal(status, 0), failed, NO_OP)
        body = LetStmt(status, _call(self.body_symbol, passed), body)
        for name, pointer in pointers.items():
            text = f"{self.name}: the memory of {name} must be aligned to {ALIGNMENT} bytes"
            aligned = operators.logical_not(_is_misaligned(pointer, ALIGNMENT))
            body = AssertStmt(aligned, message("ValueError", text), body)
        attributes = {"global_symbol": self.name, "target": target}
        return make_packed_api(PrimFunc(buffers, body, attrs=attributes))


def _untyped(pointer: PrimExpr) -> PrimExpr:
    """The pointer without its element type, so that C takes it for any parameter."""
    return operators.call("reinterpret", "handle", [pointer])


def _call(symbol: str, arguments: Sequence[PrimExpr]) -> Call:
    return operators.call("call_extern", "int32", [symbol, *arguments])


def _return(value: int) -> Stmt:
    return Evaluate(operators.call("ret", "int32", [operators.const(value, "int32")]))


def _require(pointer: Var, alignment: int) -> Stmt:
    """Leave with an error unless the pointer points somewhere, aligned."""
    wrong: PrimExpr = is_null(pointer)
    if alignment > 1:
        wrong = operators.logical_or(wrong, _is_misaligned(pointer, alignment))
    return IfThenElse(wrong, _return(INVALID_ARGUMENT))


def _is_misaligned(pointer: PrimExpr, alignment: int) -> PrimExpr:
    address = operators.call("reinterpret", "uint64", [pointer])
    rest = operators.bitwise_and(address, operators.const(alignment - 1, "uint64"))
    return operators.not_equal(rest, operators.const(0, "uint64"))
