"""Partitioning for backends: parameters bound, patterns merged, parts taken out, parts not worth a call put back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tilewright.ir.function import BaseFunc
from tilewright.ir.functor import post_order
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.transform import PassContext, Sequential
from tilewright.relay import transform
from tilewright.relay.backend.external.symbols import external_functions, external_symbol
from tilewright.relay.backend.preparation import Params, bind_params_by_name, with_main
from tilewright.relay.expr import Call
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_module
from tilewright.relay.op.contrib.backends import get_backend
from tilewright.relay.transform.lib.straight_line import straight_line
from tilewright.support.errors import TilewrightError


def prepared_for_backends(mod: IRModule, params: Params | None = None) -> IRModule:
    """The module as patterns see it: parameters are constants, inference is simplified, constants are folded."""
    if params:
        mod = with_main(mod, bind_params_by_name(mod["main"], params))
    passes = [
        transform.InferType(),
        transform.SimplifyInference(),
        transform.FoldConstant(),
        transform.FoldScaleAxis(),
        transform.FoldConstant(),
        transform.DynamicToStatic(),
        transform.InferType(),
    ]
    with PassContext(opt_level=3):
        return Sequential(passes, name="relay.byoc.prepare")(mod)


def partition_for(
    mod: IRModule,
    backends: str | Sequence[str],
    params: Params | None = None,
    *,
    mod_name: str = "default",
    is_prepared: bool = False,
) -> IRModule:
    """Take out what backends compute, the first that can taking each operator.

    ``params`` gives values to parameters of ``main``. Parts without an operator that makes a call worth its while are
    left to the compiler.
    """
    names = [backends] if isinstance(backends, str) else list(backends)
    if not is_prepared:
        mod = prepared_for_backends(mod, params)
    for name in names:
        backend = get_backend(name)
        missing = backend.why_missing()
        if missing is not None:
            raise TilewrightError(f"nothing can be taken out for {name}: {missing}")
        if backend.partition is not None:
            mod = infer_module(backend.partition(infer_module(mod), mod_name))
        else:
            passes = [
                transform.MergeComposite(backend.name),
                transform.AnnotateTarget(backend.name),
                transform.MergeCompilerRegions(),
                transform.PartitionGraph(mod_name),
            ]
            mod = Sequential(passes, name=f"relay.byoc.{name}")(infer_module(mod))
        mod = put_back(mod, [symbol for symbol, part in external_functions(mod).items() if _is_light(part)])
    return mod


def operators_of(function: Function) -> list[str]:
    """The names of the operators that a part computes, those of composite functions included, in order."""
    return [
        part.op.name
        for part in post_order(function.body)
        if isinstance(part, Call) and isinstance(part.op, Op)
    ]


def _is_light(function: Function) -> bool:
    """True for a part without any operator that is worth a call."""
    compiler = str(function.attrs["Compiler"])
    heavy = get_backend(compiler).heavy
    return bool(heavy) and not any(name in heavy for name in operators_of(function))


def put_back(mod: IRModule, symbols: Iterable[str]) -> IRModule:
    """The module in which these parts are the compiler's again."""
    wanted = set(symbols)
    if not wanted:
        return mod
    functions: dict[GlobalVar, BaseFunc] = {}
    for name, function in mod.functions.items():
        functions[name] = function
        if isinstance(function, Function) and function.attrs.get("Compiler"):
            taken = external_symbol(function) not in wanted
            # Only what is marked is put back; the other parts stay functions of the module.
            functions[name] = (
                function.without_attr("Inline") if taken else plain_function(function).with_attr("Inline", 1)
            )
    with PassContext(opt_level=3):
        inlined = transform.Inline()(mod.with_functions(functions))
    return infer_module(inlined.map_functions(_marked_again))


def _marked_again(name: GlobalVar, function: BaseFunc) -> BaseFunc:
    is_part = isinstance(function, Function) and bool(function.attrs.get("Compiler"))
    return function.with_attr("Inline", 1) if is_part else function


def plain_function(part: Function) -> Function:
    """A part as an ordinary function: composite functions are written out, and nothing marks it."""
    return Function(part.params, straight_line(part), part.ret_type)


def partition_function(name: str) -> Callable[..., IRModule]:
    """``partition_for_<name>(mod, params)``, as TVM names it."""

    def partition(
        mod: IRModule, params: Mapping[str, Any] | None = None, mod_name: str = "default"
    ) -> IRModule:
        return partition_for(mod, name, params, mod_name=mod_name)

    partition.__name__ = f"partition_for_{name}"
    partition.__doc__ = f"Take out what {name} computes; ``params`` gives values to parameters of ``main``."
    return partition
