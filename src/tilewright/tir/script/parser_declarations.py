"""Declarations of a script: names for buffers, axes and threads, and the properties of a block.

They produce no statements. ``self.block`` collects the declarations of the block that is being read; the outermost one
is the function's root block.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tilewright.ir import operators
from tilewright.ir.buffer import Buffer, BufferRegion, decl_buffer
from tilewright.ir.expr import IntImm, IterVar, PrimExpr, Range, Var
from tilewright.tir.script.parser_expressions import ExpressionParser
from tilewright.tir.stmt import MatchBufferRegion, Stmt

_AXIS_KINDS = {
    "axis.spatial": IterVar.DataPar,
    "axis.S": IterVar.DataPar,
    "axis.reduce": IterVar.CommReduce,
    "axis.R": IterVar.CommReduce,
    "axis.scan": IterVar.Ordered,
    "axis.opaque": IterVar.Opaque,
}
_REMAP_KINDS = {"S": IterVar.DataPar, "R": IterVar.CommReduce}
_BUFFER_OPTIONS = ("dtype", "data", "strides", "elem_offset", "scope", "align", "offset_factor", "type")


@dataclass
class BlockFrame:
    """The declarations of a block so far. ``reads`` and ``writes`` are None until the script declares them."""

    is_root: bool = False
    axes: list[IterVar] = field(default_factory=list)
    values: list[PrimExpr | None] = field(default_factory=list)
    predicate: PrimExpr | None = None
    reads: list[BufferRegion] | None = None
    writes: list[BufferRegion] | None = None
    annotations: dict[str, Any] = field(default_factory=dict)
    is_annotated: bool = False
    allocated: list[Buffer] = field(default_factory=list)
    matched: list[MatchBufferRegion] = field(default_factory=list)
    init: Stmt | None = None


class DeclarationParser(ExpressionParser):
    """Reads declarations."""

    def __init__(self, source: Any, environment: dict[str, Any]) -> None:
        super().__init__(source, environment)
        self.block = BlockFrame(is_root=True)
        self.function_attributes: dict[str, Any] = {}
        self.buffer_map: dict[Var, Buffer] = {}
        self.parameters: list[Var] = []
        self.loop_ranges: dict[Var, Range] = {}
        self.has_blocks = False
        self.wants_root = True

    def declaration(self, call: ast.Call, names: Sequence[ast.expr]) -> bool:
        """Read a call that declares something under these names; False if it is none."""
        name = self.function_name(call)
        reader = getattr(self, f"declare_{name.replace('.', '_')}", None) if name else None
        if reader is None and name in _AXIS_KINDS:
            self._axis(call, names, _AXIS_KINDS[name])
            return True
        if reader is None:
            return False
        reader(call, names)
        return True

    # Names

    def single_name(self, call: ast.AST, names: Sequence[ast.expr]) -> str:
        """The one name that a declaration defines."""
        if len(names) == 1 and isinstance(names[0], ast.Name):
            return names[0].id
        raise self.error(call, "this declares one name: name = T....")

    def no_name(self, call: ast.AST, names: Sequence[ast.expr]) -> None:
        """For what declares nothing by name."""
        if names:
            raise self.error(call, "this has no value to assign")

    def arguments(self, call: ast.Call, *parameters: str) -> dict[str, ast.expr]:
        """The syntax of each argument by the name of its parameter."""
        found = self.keywords(call)
        if len(call.args) > len(parameters):
            raise self.error(
                call, f"at most {len(parameters)} arguments are accepted here: {', '.join(parameters)}"
            )
        for parameter, argument in zip(parameters, call.args, strict=False):
            if parameter in found:
                raise self.error(call, f"{parameter} is given twice")
            found[parameter] = argument
        for name in [name for name in found if name not in parameters]:
            # Programs for TVM have such arguments, since TVM passes over them.
            warnings.warn(
                f"{self.source.span(call)}: there is no argument {name}, which is ignored; "
                f"there are {', '.join(parameters)}",
                stacklevel=2,
            )
            del found[name]
        return found

    def required(self, call: ast.Call, arguments: dict[str, ast.expr], name: str) -> ast.expr:
        """An argument that must be there."""
        if name not in arguments:
            raise self.error(call, f"the argument {name} is missing")
        return arguments[name]

    # Variables and threads

    def _declare_variable(self, call: ast.Call, names: Sequence[ast.expr]) -> None:
        name = self.single_name(call, names)
        made = self.value(call)
        assert isinstance(made, Var)
        self.define(name, type(made)(name, made.type_annotation))

    declare_var = declare_size_var = declare_buffer_var = _declare_variable

    def declare_env_thread(self, call: ast.Call, names: Sequence[ast.expr]) -> None:
        """``tx = T.env_thread("threadIdx.x")``."""
        name = self.single_name(call, names)
        tag = self.string(self.required(call, self.arguments(call, "env_name"), "env_name"))
        self.define(name, IterVar(None, Var(name, "int32"), IterVar.ThreadIndex, tag))

    # Buffers

    def make_buffer(self, call: ast.Call, name: str, given: dict[str, ast.expr]) -> Buffer:
        """The buffer that a declaration describes."""
        options: dict[str, Any] = {}
        if "dtype" in given:
            options["dtype"] = self.string(given["dtype"])
        for option in ("scope", "type"):
            if option in given:
                options["buffer_type" if option == "type" else option] = self.string(given[option])
        if options.get("buffer_type") == "default":
            options["buffer_type"] = ""
        if "data" in given and not _is_none(given["data"]):
            data = self.value(given["data"])
            if not isinstance(data, Var):
                raise self.error(given["data"], "data must be a pointer variable")
            options["data"] = data
        if "strides" in given and not _is_none(given["strides"]):
            options["strides"] = self.exprs(given["strides"])
        if "elem_offset" in given and not _is_none(given["elem_offset"]):
            options["elem_offset"] = self.expr(given["elem_offset"])
        for option in ("align", "offset_factor"):
            if option in given:
                options["data_alignment" if option == "align" else option] = self.integer(given[option])
        shape = self.exprs(self.required(call, given, "shape"))
        return decl_buffer(shape, name=name, **options)

    def declare_match_buffer(self, call: ast.Call, names: Sequence[ast.expr]) -> None:
        """A buffer that stands for a parameter, or for a region of another buffer."""
        name = self.single_name(call, names)
        given = self.arguments(call, "source", "shape", *_BUFFER_OPTIONS)
        source = self.value(self.required(call, given, "source"))
        if isinstance(source, Var):
            if not any(source is parameter for parameter in self.parameters):
                raise self.error(call, f"{source.name} is not a parameter of the function")
            if not source.dtype.is_handle:
                raise self.error(call, f"parameter {source.name} has type {source.dtype}, not T.handle")
            if source in self.buffer_map:
                warnings.warn(
                    f"{self.source.span(call)}: parameter {source.name} was bound to {self.buffer_map[source].name}, "
                    f"which is nobody's memory from here on",
                    stacklevel=2,
                )
            buffer = self.buffer_map[source] = self.make_buffer(call, name, given)
        else:
            region = self.region(given["source"])
            if "shape" not in given:
                raise self.error(call, "the argument shape is missing")
            if "dtype" not in given:
                given["dtype"] = ast.Constant(str(region.buffer.dtype))
            buffer = self.make_buffer(call, name, given)
            self._require_same_shape(call, buffer, region)
            self.block.matched.append(MatchBufferRegion(buffer, region))
        self.define(name, buffer)

    def _require_same_shape(self, call: ast.Call, buffer: Buffer, region: BufferRegion) -> None:
        """A buffer has the shape of the region that it stands for, whose first dimensions may be of one element."""
        extents = [bounds.extent for bounds in region.region]
        surplus = len(extents) - len(buffer.shape)
        pairs = zip([*[operators.const(1)] * surplus, *buffer.shape], extents, strict=False)
        if surplus < 0 or any(
            isinstance(one, IntImm) and isinstance(other, IntImm) and one.value != other.value
            for one, other in pairs
        ):
            raise self.error(
                call, f"{buffer.name} has the shape {list(buffer.shape)}, and the region {extents}"
            )

    def declare_alloc_buffer(self, call: ast.Call, names: Sequence[ast.expr]) -> None:
        """A buffer that lives within the block."""
        name = self.single_name(call, names)
        if isinstance(self.lookup(name), Buffer):
            raise self.error(call, f"there is a buffer {name} already")
        buffer = self.make_buffer(call, name, self.arguments(call, "shape", *_BUFFER_OPTIONS))
        self.block.allocated.append(buffer)
        self.define(name, buffer)

    def declare_buffer_decl(self, call: ast.Call, names: Sequence[ast.expr]) -> None:
        """A buffer that other statements give memory to."""
        name = self.single_name(call, names)
        self.define(name, self.make_buffer(call, name, self.arguments(call, "shape", *_BUFFER_OPTIONS)))

    # What is said about functions and blocks

    def declare_func_attr(self, call: ast.Call, names: Sequence[ast.expr]) -> None:
        """``T.func_attr({...})``."""
        self.no_name(call, names)
        self.function_attributes.update(self._dictionary_argument(call))

    def declare_no_root_block(self, call: ast.Call, names: Sequence[ast.expr]) -> None:
        """``T.no_root_block()``: the function has no root block."""
        self.no_name(call, names)
        self.wants_root = False

    def declare_block_attr(self, call: ast.Call, names: Sequence[ast.expr]) -> None:
        """``T.block_attr({...})``."""
        self.no_name(call, names)
        frame = self._inside_block(call)
        if frame.is_annotated:
            raise self.error(call, "the block has its attributes already")
        frame.is_annotated = True
        frame.annotations.update(self._dictionary_argument(call))

    def _dictionary_argument(self, call: ast.Call) -> dict[str, Any]:
        if len(call.args) != 1 or not isinstance(call.args[0], ast.Dict):
            raise self.error(call, "a dictionary is needed here")
        return self.literal(call.args[0])  # type: ignore[no-any-return]

    def _inside_block(self, call: ast.AST) -> BlockFrame:
        if self.block.is_root:
            raise self.error(call, "this is outside a block")
        return self.block

    def declare_reads(self, call: ast.Call, names: Sequence[ast.expr]) -> None:
        """``T.reads(A[0:16], B[i])``."""
        self.no_name(call, names)
        frame = self._inside_block(call)
        if frame.reads is not None:
            raise self.error(call, "the block has said what it reads already")
        frame.reads = self._regions(call)

    def declare_writes(self, call: ast.Call, names: Sequence[ast.expr]) -> None:
        """``T.writes(C[i, j])``."""
        self.no_name(call, names)
        frame = self._inside_block(call)
        if frame.writes is not None:
            raise self.error(call, "the block has said what it writes already")
        frame.writes = self._regions(call)

    def _regions(self, call: ast.Call) -> list[BufferRegion]:
        regions: list[BufferRegion] = []
        for argument in call.args:
            parts = argument.elts if isinstance(argument, (ast.List, ast.Tuple)) else [argument]
            regions.extend([self.region(part) for part in parts])
        return regions

    def declare_where(self, call: ast.Call, names: Sequence[ast.expr]) -> None:
        """``T.where(i < n)``."""
        self.no_name(call, names)
        frame = self._inside_block(call)
        if frame.predicate is not None:
            raise self.error(call, "the block has a predicate already")
        frame.predicate = self.expr(self.required(call, self.arguments(call, "predicate"), "predicate"))

    # Axes

    def add_axis(self, node: ast.AST, name: str, domain: Range, value: PrimExpr | None, kind: int) -> None:
        """One more axis of the block."""
        dtype = domain.extent.dtype if value is None else value.dtype
        if domain.extent.dtype is not dtype or domain.min.dtype is not dtype:
            domain = Range.from_min_extent(
                operators.cast(dtype, domain.min), operators.cast(dtype, domain.extent)
            )
        axis = IterVar(domain, Var(name, dtype), kind)
        frame = self._inside_block(node)
        if any(known.var.name == name for known in frame.axes):
            raise self.error(node, f"the block has an axis {name} already")
        frame.axes.append(axis)
        frame.values.append(value)
        self.define(name, axis.var)

    def _axis(self, call: ast.Call, names: Sequence[ast.expr], kind: int) -> None:
        """``vi = T.axis.spatial(128, i)``; the range may be a pair of first index and end."""
        name = self.single_name(call, names)
        given = self.arguments(call, "dom", "value")
        domain = self.axis_domain(self.required(call, given, "dom"))
        value = self.expr(self.required(call, given, "value"))
        self.add_axis(call, name, domain, value, kind)

    def axis_domain(self, node: ast.expr) -> Range:
        """The range of an axis."""
        if isinstance(node, (ast.Tuple, ast.List)) and len(node.elts) == 2:
            return self.range_between(node.elts[0], node.elts[1])
        value = self.value(node)
        return value if isinstance(value, Range) else Range(self.as_expr(node, value))

    def declare_axis_remap(self, call: ast.Call, names: Sequence[ast.expr]) -> None:
        """``vi, vk = T.axis.remap("SR", [i, k])``: axes that run as the loops of these variables do."""
        given = self.arguments(call, "kinds", "bindings")
        kinds = self.string(self.required(call, given, "kinds"))
        bindings = self.required(call, given, "bindings")
        values = self.exprs(bindings)
        if len(kinds) != len(values) or len(names) != len(values):
            raise self.error(
                call, f"{len(names)} axes need {len(names)} kinds and as many loops, there are {len(values)}"
            )
        for name, letter, value in zip(names, kinds, values, strict=True):
            if not isinstance(name, ast.Name):
                raise self.error(name, "an axis needs a name")
            if letter not in _REMAP_KINDS:
                raise self.error(
                    call, f"{letter!r} is not a kind of axis; there are S (spatial) and R (reduce)"
                )
            if not isinstance(value, Var) or value not in self.loop_ranges:
                raise self.error(
                    bindings, "remap takes the variables of loops; use T.axis.spatial(extent, value)"
                )
            self.add_axis(call, name.id, self.loop_ranges[value], value, _REMAP_KINDS[letter])

    def declare_bind(self, call: ast.Call, names: Sequence[ast.expr]) -> None:
        """``T.bind(vi, value)``: the value of an axis that the head of the block declared."""
        self.no_name(call, names)
        given = self.arguments(call, "axis", "value")
        axis = self.value(self.required(call, given, "axis"))
        frame = self._inside_block(call)
        for position, known in enumerate(frame.axes):
            if known.var is axis:
                frame.values[position] = self.expr(self.required(call, given, "value"))
                return
        raise self.error(call, "this is not an axis of the block")


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
