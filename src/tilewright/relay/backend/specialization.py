"""A model of open sizes that gets code of its own for the sizes that it is called with often.

A program of the virtual machine takes any sizes. Code for constant sizes is faster: register tiles divide the loops,
branches and divisions are decided by the compiler, and memory is planned. A ``SpecializingSession`` counts the sizes
of its calls. For those that come often it compiles the model again with the sizes as constants, in a background
thread, and uses that code from then on. The kernels are kept in the compile cache, where the next process finds them.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tilewright.ir.base import RelayExpr
from tilewright.ir.expr import IntImm
from tilewright.ir.module import IRModule
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.transform import PassContext
from tilewright.relay.backend.preparation import Params, as_module, bind_params_by_name, with_main
from tilewright.relay.backend.vm.compiler import compile as compile_for_machine
from tilewright.relay.build_module import build
from tilewright.relay.expr import Var
from tilewright.relay.expr_functor import substitute
from tilewright.relay.function import Function
from tilewright.runtime.device import Device
from tilewright.runtime.session import Session
from tilewright.support.errors import TilewrightError

Sizes = tuple[tuple[int, ...], ...]
"""The shapes of the inputs that have open sizes, in the order of the parameters."""

CALLS: Final = 8
"""Calls with the same sizes after which they get code of their own."""
MOST: Final = 4
"""How many sizes have code of their own at a time: each has its own packed weights."""


class SpecializingSession:
    """A model that is called with named inputs of any sizes, like a ``Session``.

    After ``calls`` calls with the same sizes the model is compiled for them in the background; calls in the meantime
    are computed by the general code. At most ``most`` sizes have code of their own: the least recently used is dropped
    for another.
    """

    def __init__(
        self,
        mod: IRModule | Function,
        target: Any = "llvm",
        params: Params | None = None,
        *,
        calls: int = CALLS,
        most: int = MOST,
        device: Device | None = None,
        output_names: Sequence[str] | None = None,
    ) -> None:
        """Compiles the general code, under the current ``PassContext``; the later builds run under it as well."""
        if calls < 1 or most < 1:
            raise TilewrightError(f"calls and most are at least 1, not {calls} and {most}")
        module = as_module(mod)
        main = module["main"]
        if not isinstance(main, Function):
            raise TilewrightError("the module has no function main of Relay")
        self._module = with_main(module, bind_params_by_name(main, params or {}))
        self._open = tuple(one.name_hint for one in self._module["main"].params if _is_open(one))
        self._target, self._device = target, device
        self._context = PassContext.current()
        self._calls, self._most = calls, most
        self._general = compile_for_machine(self._module, target).session(device, output_names)
        self._lock = threading.Lock()
        self._counts: Counter[Sizes] = Counter()
        self._made: OrderedDict[Sizes, Session] = OrderedDict()
        self._pending: dict[Sizes, Future[None]] = {}
        self._refused: dict[Sizes, str] = {}
        self._builder = ThreadPoolExecutor(1, thread_name_prefix="specialize")
        self._closed = False

    @property
    def input_names(self) -> tuple[str, ...]:
        """The inputs that ``run`` needs."""
        return self._general.input_names

    @property
    def output_names(self) -> tuple[str, ...]:
        """The outputs of ``run``."""
        return self._general.output_names

    @property
    def specialized(self) -> list[dict[str, tuple[int, ...]]]:
        """The shapes of open inputs that have code of their own, the most recently used last."""
        with self._lock:
            return [self._named(sizes) for sizes in self._made]

    @property
    def refused(self) -> list[tuple[dict[str, tuple[int, ...]], str]]:
        """The shapes that stay with the general code, and why: sizes inside the model depend on data as well."""
        with self._lock:
            return [(self._named(sizes), reason) for sizes, reason in self._refused.items()]

    def run(self, inputs: Mapping[str, Any]) -> dict[str, npt.NDArray[Any]]:
        """The outputs by name for inputs by name; see ``Session.run``."""
        return self._session_for(inputs).run(inputs)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the builds that have begun are done; False if the seconds are not enough."""
        with self._lock:
            pending = list(self._pending.values())
        return not wait(pending, timeout).not_done

    def close(self) -> None:
        """Begin no more builds. Calls go on with the code that is there."""
        with self._lock:
            self._closed = True
        self._builder.shutdown(wait=False, cancel_futures=True)

    def _session_for(self, inputs: Mapping[str, Any]) -> Session:
        """The code for the sizes of a call. Whatever is wrong with the inputs is left to the general code to say."""
        if not self._open or not isinstance(inputs, Mapping) or any(one not in inputs for one in self._open):
            return self._general
        sizes = tuple(_shape(inputs[name]) for name in self._open)
        with self._lock:
            made = self._made.get(sizes)
            if made is not None:
                self._made.move_to_end(sizes)
                return made
            if self._closed or sizes in self._pending or sizes in self._refused:
                return self._general
            self._counts[sizes] += 1
            if self._counts[sizes] >= self._calls:
                del self._counts[sizes]
                self._pending[sizes] = self._builder.submit(self._specialize, sizes)
        return self._general

    def _specialize(self, sizes: Sizes) -> None:
        """In the background thread: compile the model for sizes, and use it from now on."""
        made: Session | None = None
        reason = ""
        try:
            with self._context:
                factory = build(with_input_shapes(self._module, self._named(sizes)), self._target)
            made = factory.session(self._device, self._general.output_names)
        except TilewrightError as error:
            reason = error.message
        finally:
            with self._lock:
                self._pending.pop(sizes, None)
                if made is None:
                    self._refused[sizes] = reason or "the build failed"
                else:
                    self._made[sizes] = made
                    while len(self._made) > self._most:
                        self._made.popitem(last=False)

    def _named(self, sizes: Sizes) -> dict[str, tuple[int, ...]]:
        return dict(zip(self._open, sizes, strict=True))

    def __repr__(self) -> str:
        return (
            f"SpecializingSession({', '.join(self.input_names)} -> {', '.join(self.output_names)}, "
            f"{len(self._made)} sizes with code of their own)"
        )


def with_input_shapes(mod: IRModule, shapes: Mapping[str, Sequence[int]]) -> IRModule:
    """The module with these shapes of the inputs of ``main``, by name."""
    main = mod["main"]
    assert isinstance(main, Function)
    fixed: dict[Var, RelayExpr] = {
        one: Var(one.name_hint, TensorType(tuple(shapes[one.name_hint]), one.type_annotation.dtype))
        for one in main.params
        if one.name_hint in shapes and isinstance(one.type_annotation, TensorType)
    }
    params = [fixed.get(one, one) for one in main.params]
    return with_main(
        mod, main.replace(params=tuple(params), body=substitute(main.body, fixed), ret_type=None)
    )


def _is_open(parameter: Var) -> bool:
    kind = parameter.type_annotation
    return (
        isinstance(kind, TensorType)
        and kind.shape is not None
        and not all(isinstance(size, (int, IntImm)) for size in kind.shape)
    )


def _shape(value: Any) -> tuple[int, ...]:
    found = getattr(value, "shape", None)
    return tuple(int(size) for size in (np.shape(value) if found is None else found))
