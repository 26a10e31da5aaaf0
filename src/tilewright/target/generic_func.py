"""Functions that select their implementation by the current target.

    @tvm.target.generic_func
    def schedule(outputs): ...            # the default

    @schedule.register("cuda")
    def schedule_cuda(outputs): ...       # used under a target with the key "cuda"

A call uses the implementation of the first of the target's keys that has one, otherwise the default.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any, Final

from tilewright.support.errors import TargetError
from tilewright.target.target import Target

_NAMED: Final[dict[str, GenericFunc]] = {}

Watcher = Callable[[str, Callable[..., Any]], None]


class GenericFunc:
    """A named function with a default and implementations for target keys."""

    def __init__(self, name: str = "generic") -> None:
        self.name = name
        self.default: Callable[..., Any] | None = None
        self.dispatch_dict: dict[str, Callable[..., Any]] = {}
        self._watchers: list[Watcher] = []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.get_function()(*args, **kwargs)

    def watch(self, told: Watcher) -> None:
        """Call ``told(key, function)`` for every implementation that is registered, now and later."""
        self._watchers.append(told)
        for key, function in self.dispatch_dict.items():
            told(key, function)

    def get_function(self, target: Target | None = None) -> Callable[..., Any]:
        """The implementation for the given, else the current target."""
        chosen = target if target is not None else Target.current()
        for key in chosen.keys if chosen is not None else ():
            if key in self.dispatch_dict:
                return self.dispatch_dict[key]
        if self.default is None:
            raise TargetError(
                f"generic function {self.name!r} has no default, and none for the target '{chosen}'"
            )
        return self.default

    def set_default(self, func: Callable[..., Any], allow_override: bool = False) -> None:
        """Use ``func`` where no key has an implementation."""
        if self.default is not None and not allow_override:
            raise TargetError(
                f"generic function {self.name!r} already has a default; pass allow_override=True"
            )
        self.default = func

    def register(
        self, func: Callable[..., Any], key_list: str | Sequence[str], allow_override: bool = False
    ) -> None:
        """Use ``func`` under targets that have one of the keys."""
        keys = [key_list] if isinstance(key_list, str) else list(key_list)
        taken = [key for key in keys if key in self.dispatch_dict]
        if taken and not allow_override:
            raise TargetError(
                f"generic function {self.name!r} already has an implementation for {', '.join(taken)}; "
                "override it explicitly if that is meant"
            )
        self.dispatch_dict.update(dict.fromkeys(keys, func))
        for told in self._watchers:
            for key in keys:
                told(key, func)


class DispatchedFunction:
    """The result of the decorators: called like the default, with ``register`` to add an implementation for a key."""

    def __init__(self, generic: GenericFunc, fdefault: Callable[..., Any], override: bool) -> None:
        self.generic = generic
        self.fdefault = fdefault
        self._override = override
        update_wrapper(self, fdefault)

    @property
    def dispatch_dict(self) -> dict[str, Callable[..., Any]]:
        """The implementations by key."""
        return self.generic.dispatch_dict

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.generic(*args, **kwargs)

    def get_packed_func(self) -> GenericFunc:
        """The generic function itself, which other implementations may be called through."""
        return self.generic

    def register(
        self, key: str | Sequence[str], func: Callable[..., Any] | None = None, override: bool | None = None
    ) -> Any:
        """Use ``func`` under targets that have the key (or one of the keys); without ``func``, a decorator."""
        allow_override = self._override if override is None else override

        def add(function: Callable[..., Any]) -> Callable[..., Any]:
            self.generic.register(function, key, allow_override)
            return function

        return add if func is None else add(func)


def get_native_generic_func(name: str) -> GenericFunc:
    """The generic function that is known under this name, made if it is new."""
    return _NAMED.setdefault(name, GenericFunc(name))


def generic_func(fdefault: Callable[..., Any]) -> DispatchedFunction:
    """Decorator: a new generic function with ``fdefault`` as its default."""
    generic = GenericFunc(fdefault.__name__)
    generic.set_default(fdefault)
    return DispatchedFunction(generic, fdefault, override=False)


def override_native_generic_func(func_name: str) -> Callable[[Callable[..., Any]], DispatchedFunction]:
    """Decorator: make ``fdefault`` the default of the generic function that is known under this name."""

    def decorate(fdefault: Callable[..., Any]) -> DispatchedFunction:
        generic = get_native_generic_func(func_name)
        generic.set_default(fdefault, allow_override=True)
        return DispatchedFunction(generic, fdefault, override=True)

    return decorate
