"""What ``torch.compile(..., options={...})`` can say to this backend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

from tilewright.relay.transform.to_mixed_precision import NARROW
from tilewright.support.errors import TilewrightError
from tilewright.support.suggestions import did_you_mean
from tilewright.target import Target

MODES: Final = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
"""PyTorch's modes. A call is one C call in all of them, and schedules are constructed, so they do not differ."""

_HIGHEST_LEVEL: Final = 4


@dataclass(frozen=True)
class BackendOptions:
    """The options of one ``torch.compile``; the fields' names are the options' names."""

    target: Any = None
    """What to compile for: a target or its text; without one, what the tensors are on."""
    opt_level: int = 3
    """The level of the graph passes, as in ``PassContext``."""
    mixed_precision: str | None = None
    """"float16" or "bfloat16": compute in it where that pays. Inputs and results keep their types."""
    freeze: bool = True
    """In inference, take parameters and buffers for constants until one of them changes."""
    fallback: bool = True
    """Leave what cannot be compiled to PyTorch, with a warning; without it that is an error."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """The configuration of the passes, as in ``PassContext(config=...)``."""

    @classmethod
    def read(cls, options: Mapping[str, Any] | None, mode: str | None) -> BackendOptions:
        """The options as given to ``torch.compile``; an error for what is not an option or has a wrong value."""
        known = [one.name for one in fields(cls)]
        if mode is not None and mode not in MODES:
            raise TilewrightError(
                f"the backend tilewright has no mode {mode!r}{did_you_mean(mode, MODES)}: "
                f"the modes are {', '.join(MODES)}"
            )
        for name in options or {}:
            if name not in known:
                raise TilewrightError(
                    f"the backend tilewright has no option {name!r}{did_you_mean(str(name), known)}: "
                    f"the options are {', '.join(known)}"
                )
        made = cls(**dict(options or {}))
        made.check()
        return made

    def check(self) -> None:
        """Raise an error if a value is not one that the option can have."""
        if self.target is not None and not isinstance(self.target, Target):
            Target(self.target)
        level = self.opt_level
        if isinstance(level, bool) or not isinstance(level, int) or not 0 <= level <= _HIGHEST_LEVEL:
            raise TilewrightError(f"opt_level is a number from 0 to {_HIGHEST_LEVEL}, not {level!r}")
        if self.mixed_precision is not None and self.mixed_precision not in NARROW:
            near = did_you_mean(str(self.mixed_precision), NARROW)
            raise TilewrightError(
                f"mixed_precision is one of {', '.join(NARROW)} or None, not {self.mixed_precision!r}{near}"
            )
        for name in ("freeze", "fallback"):
            if not isinstance(getattr(self, name), bool):
                raise TilewrightError(f"{name} is True or False, not {getattr(self, name)!r}")
        if not isinstance(self.config, Mapping):
            raise TilewrightError(f"config is a dictionary, not a {type(self.config).__name__}")
