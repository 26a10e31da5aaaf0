"""Running passes one after another, whatever their levels: who names a pass wants it to run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tilewright.ir.instrument import CheckEveryPass
from tilewright.ir.module import IRModule
from tilewright.ir.transform import Pass, PassInfo, Sequential, find_pass
from tilewright.relay.analysis.well_formed import verify_module as verify_graph
from tilewright.relay.function import Function
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.support.errors import InternalError, ModelError, TilewrightError, VerifyError
from tilewright.support.recursion import recursion_room
from tilewright.target import Target
from tilewright.tir.function import PrimFunc
from tilewright.tir.verify.verifier import verify_module as verify_loops


def run_passes(module: IRModule, passes: Iterable[Pass], target: Target | str) -> IRModule:
    """The module after the passes, each after those that it requires, with the target as the current one."""
    with recursion_room(), Target(target):
        for each in _flat(passes):
            _check_level(module, each)
            try:
                for needed in each.info.required:
                    module = find_pass(needed)(module)
                module = each(module)
            except InternalError:
                raise
            except TilewrightError as problem:
                raise ModelError(f"pass {each}: {problem}") from problem
    return module


def _flat(passes: Iterable[Pass]) -> Iterator[Pass]:
    """The passes in the sequences among them, which would leave out those above the context's level."""
    for each in passes:
        if isinstance(each, Sequential):
            yield from _flat(each.passes)
        else:
            yield each


def _check_level(module: IRModule, each: Pass) -> None:
    """An error for a pass that would leave the module as it is, because it is of the other level."""
    functions = module.functions.values()
    if not functions:
        return
    if each.info.name.startswith("tir.") and not any(isinstance(one, PrimFunc) for one in functions):
        raise ModelError(
            f"pass {each} runs on loops, and the program is a graph: give it a TVMScript program"
        )
    if isinstance(each, FunctionPass) and not any(isinstance(one, Function) for one in functions):
        raise ModelError(f"pass {each} runs on graphs, and the program is loops: give it a Relay program")


def verifying() -> CheckEveryPass:
    """An instrument that verifies the module after every pass."""
    return CheckEveryPass(_verify_after)


def verify_program(module: IRModule) -> None:
    """A ``VerifyError`` where the program breaks a rule of its level."""
    verify_graph(module)
    verify_loops(module)


def _verify_after(module: IRModule, info: PassInfo) -> None:
    try:
        verify_program(module)
    except VerifyError as problem:
        raise VerifyError(f"after pass {info.name}: {problem.message}", span=problem.span) from problem
