"""TVM's compiler of primitive functions, ``relay.backend.te_compiler.get()``: each structure once for a target.

The compiler itself goes through ``relay.backend.kernel_units``; this is for scripts that compile single functions.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright import te
from tilewright.compile import build, lower
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.ir.structural import structural_equal
from tilewright.ir.structural_hash import structural_hash
from tilewright.relay.analysis.symbolic_types import uses_unknown_dimensions
from tilewright.relay.backend.te_compiler import kernel_name, tensor_expression
from tilewright.relay.function import Function
from tilewright.runtime.packed_func import PackedFunc
from tilewright.support.errors import LoweringError
from tilewright.target import Target
from tilewright.te.tensor import Tensor


class CCacheKey:
    """The key of a compiled function: its structure and the target."""

    def __init__(self, source_func: Function, target: str | Target) -> None:
        self.source_func, self.target = source_func, Target(target)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, CCacheKey)
            and str(self.target) == str(other.target)
            and structural_equal(self.source_func, other.source_func)
        )

    def __hash__(self) -> int:
        return hash((structural_hash(self.source_func), str(self.target)))

    def same_as(self, other: object) -> bool:
        """True for the same key object."""
        return self is other


@dataclass(frozen=True, eq=False)
class CachedFunc:
    """A primitive function as tensor expressions, with its schedule and its loops."""

    target: Target
    prim_fn_var: GlobalVar
    inputs: list[Tensor]
    outputs: list[Tensor]
    schedule: te.Schedule
    funcs: IRModule

    def same_as(self, other: object) -> bool:
        """True for the same function object, which the compiler returns for functions of one structure."""
        return self is other


@dataclass(eq=False)
class CCacheValue:
    """A compiled function, how often it was requested, and the callable once it was compiled."""

    cached_func: CachedFunc
    use_count: int = 0
    packed_func: PackedFunc | None = None


class TECompiler:
    """Compiles primitive functions, each structure once for a target."""

    def __init__(self) -> None:
        self._cache: dict[CCacheKey, CCacheValue] = {}

    def _entry(self, source_func: Function | CCacheKey, target: str | Target | None) -> CCacheValue:
        key = source_func if isinstance(source_func, CCacheKey) else None
        if key is None:
            chosen = target if target is not None else Target.current()
            if not isinstance(source_func, Function) or chosen is None:
                raise LoweringError("pass a function and a target, or call it within a target")
            key = CCacheKey(source_func, chosen)
        found = self._cache.get(key)
        if found is None:
            found = self._cache[key] = CCacheValue(_cached(key))
        found.use_count += 1
        return found

    def lower(
        self,
        source_func: Function | CCacheKey,
        target: str | Target | None = None,
        mod_name: str = "default",
    ) -> CachedFunc:
        """The function as tensor expressions and loops. The target is the current one where none is given."""
        return self._entry(source_func, target).cached_func

    def jit(self, source_func: Function | CCacheKey, target: str | Target | None = None) -> PackedFunc:
        """The function, compiled: it takes its inputs, then its outputs."""
        entry = self._entry(source_func, target)
        if entry.packed_func is None:
            made = entry.cached_func
            entry.packed_func = build(made.funcs, target=made.target).get_function(made.prim_fn_var.name_hint)
        return entry.packed_func

    def clear(self) -> None:
        """Forget everything."""
        self._cache.clear()

    def items(self) -> list[tuple[CCacheKey, CCacheValue]]:
        """What is compiled, in the order of the requests."""
        return list(self._cache.items())

    def dump(self) -> None:
        """Print what is compiled."""
        for key, value in self._cache.items():
            name = value.cached_func.prim_fn_var.name_hint
            print(f"{name}, used {value.use_count} times: {key.source_func}")  # noqa: T201


def _cached(key: CCacheKey) -> CachedFunc:
    function = key.source_func
    if uses_unknown_dimensions(function):
        raise LoweringError("a function with unknown dimensions is compiled by relay.vm")
    program = tensor_expression(function, key.target)
    name = kernel_name(function)
    arguments = [*program.inputs, *program.outputs]
    with key.target:
        loops = lower(program.schedule, arguments, name)
    return CachedFunc(key.target, GlobalVar(name), program.inputs, program.outputs, program.schedule, loops)


_COMPILER = TECompiler()


def get() -> TECompiler:
    """The compiler of this process."""
    return _COMPILER
