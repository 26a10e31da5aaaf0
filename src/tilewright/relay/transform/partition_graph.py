"""PartitionGraph: turns each marked region into a function of the module for an external code generator.

The function has the attributes "Compiler", the code generator; "global_symbol", its name in the code; "Primitive"; and
"Inline". Constants that enter a region move into its function, unless ``bind_constants`` is off. Marks for "default"
are removed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.function import BaseFunc
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.transform import Pass, PassContext
from tilewright.relay.analysis.annotated_regions import AnnotatedRegion, AnnotatedRegionSet
from tilewright.relay.expr import Call, Constant, Tuple, TupleGetItem, Var
from tilewright.relay.expr_functor import ExprMutator
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_module
from tilewright.relay.transform.annotate_target import DEFAULT
from tilewright.support.recursion import recursion_room


@dataclass(eq=False)
class _Made:
    """The function of a region while it is built, and the call of it."""

    name: GlobalVar
    params: dict[Any, Var]
    args: list[RelayExpr]
    results: list[RelayExpr]
    call: Call | None = None


class _Body(ExprMutator):
    """The inside of a region: what begins it is a parameter or a constant."""

    def __init__(self, partitioner: _Partition, region: AnnotatedRegion, made: _Made, name: str) -> None:
        super().__init__()
        self.partitioner = partitioner
        self.region = region
        self.made = made
        self.name = name

    def visit_call(self, call: Call) -> RelayExpr:
        if call.op is not self.partitioner.begin:
            return call.map_children(self.visit)
        given = call.args[0]
        if isinstance(given, Constant) and self.partitioner.bind_constants:
            return given
        known = self.made.params.get(given)
        if known is None:
            position = len(self.made.params)
            known = Var(f"{self.name}_i{position}", getattr(given, "_checked_type_", None))
            self.made.params[given] = known
            self.made.args.append(self.partitioner.visit(given))
        return known


class _Partition(ExprMutator):
    def __init__(self, body: RelayExpr, prefix: str, first_number: int, bind_constants: bool) -> None:
        super().__init__()
        self.bind_constants = bind_constants
        self.begin, self.end = Op.get("annotation.compiler_begin"), Op.get("annotation.compiler_end")
        self.regions = AnnotatedRegionSet(body, self.begin, self.end)
        self.prefix = prefix
        taken_out = [region for region in self.regions if region.target != DEFAULT]
        self.numbers = {region: first_number + position for position, region in enumerate(taken_out)}
        self.made: dict[AnnotatedRegion, _Made] = {}
        self.functions: dict[int, tuple[GlobalVar, Function]] = {}

    def visit_call(self, call: Call) -> RelayExpr:
        if call.op is self.begin:
            return self.visit(call.args[0])  # type: ignore[no-any-return]
        if call.op is not self.end:
            return call.map_children(self.visit)
        region = self.regions.get_region(call)
        if region is None or region.target == DEFAULT:
            return self.visit(call.args[0])  # type: ignore[no-any-return]
        made = self.made.get(region) or self._make(region)
        assert made.call is not None
        if len(made.results) == 1:
            return made.call
        return TupleGetItem(made.call, made.results.index(call.args[0]))

    def _make(self, region: AnnotatedRegion) -> _Made:
        """The function of a region: of what enters it, giving what leaves it."""
        number = self.numbers[region]
        name = f"{region.target}_{number}"
        symbol = f"{self.prefix}_{region.target}_main_{number}"
        results = list(dict.fromkeys(end.args[0] for end in region.rets))
        made = self.made[region] = _Made(GlobalVar(symbol), {}, [], results)
        inside = _Body(self, region, made, name)
        bodies = [inside.visit(result) for result in results]
        function = Function(
            made.params.values(),
            bodies[0] if len(bodies) == 1 else Tuple(bodies),
            attrs={"Primitive": 1, "Inline": 1, "Compiler": region.target, "global_symbol": symbol},
        )
        self.functions[number] = (made.name, function)
        made.call = Call(made.name, made.args)
        return made


@dataclass
class PartitionGraph(Pass):
    """Make a function of each region that is marked for another code generator; ``mod_name`` is part of its name.
    Without ``bind_constants``, constants that enter a region are arguments of its function."""

    mod_name: str = "default"
    bind_constants: bool = True

    name = "PartitionGraph"
    opt_level = 0

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """Partition every function of the graph level."""
        mod = infer_module(mod)
        functions: dict[GlobalVar, BaseFunc] = {}
        made: dict[GlobalVar, BaseFunc] = {}
        for name, function in mod.functions.items():
            functions[name] = function
            if isinstance(function, Function) and not function.attrs.get("Compiler"):
                partitioner = _Partition(
                    function.body, f"tvmgen_{self.mod_name}", len(made), self.bind_constants
                )
                with recursion_room():
                    body = partitioner.visit(function.body)
                made.update(partitioner.functions[number] for number in sorted(partitioner.functions))
                if body is not function.body:
                    functions[name] = function.replace(body=body)
        return infer_module(mod.with_functions({**functions, **made}))
