"""How ``relay.quantize`` quantises: TVM's ``qconfig``, and the state of one quantisation."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass, field, fields
from enum import IntEnum
from typing import Any, Final

from tilewright.ir.op import Op
from tilewright.relay.expr import Call
from tilewright.support.errors import ModelError
from tilewright.support.suggestions import did_you_mean

CALIBRATE_MODES: Final = ("global_scale", "kl_divergence", "percentile")
WEIGHT_SCALES: Final = ("power2", "max")
ROUNDINGS: Final = ("UPWARD", "TONEAREST")
PARTITIONS: Final = ("disabled", "enabled", "fully_integral")


class QAnnotateKind(IntEnum):
    """What a quantised tensor is: passed through, data or weights of a layer, or a layer's sums."""

    IDENTITY = 0
    INPUT = 1
    WEIGHT = 2
    ACTIVATION = 3


def kind2str(kind: int) -> str:
    """The name of a kind, as fields of ``QConfig`` contain it (``nbit_input``)."""
    try:
        return QAnnotateKind(kind).name.lower()
    except ValueError:
        raise ModelError(f"the kinds of quantised tensors are 0 to 3, not {kind!r}") from None


@dataclass
class QConfig:
    """The options of a quantisation; ``with qconfig(...)`` makes them the current ones.

    ``skip_conv_layers`` has the numbers of convolutions that stay in floating point, in the order of the program, or is
    None; ``debug_enabled_ops`` the only operators that are quantised. ``partition_conversions`` moves conversions of
    inputs and outputs to functions of their own.
    """

    nbit_input: int = 8
    nbit_weight: int = 8
    nbit_activation: int = 32
    dtype_input: str = "int8"
    dtype_weight: str = "int8"
    dtype_activation: str = "int32"
    calibrate_mode: str = "global_scale"
    global_scale: float = 8.0
    weight_scale: str = "power2"
    skip_dense_layer: bool = True
    skip_conv_layers: Sequence[int] | None = (0,)
    do_simulation: bool = False
    round_for_shift: bool = True
    store_lowbit_output: bool = True
    debug_enabled_ops: Sequence[str] | None = None
    rounding: str = "UPWARD"
    calibrate_chunk_by: int = -1
    partition_conversions: str = "disabled"
    _entered: list[Token[QConfig]] = field(default_factory=list, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse values that mean nothing."""
        for name, allowed in (
            ("calibrate_mode", CALIBRATE_MODES),
            ("weight_scale", WEIGHT_SCALES),
            ("rounding", ROUNDINGS),
            ("partition_conversions", PARTITIONS),
        ):
            value = getattr(self, name)
            if value not in allowed:
                hint = did_you_mean(str(value), allowed)
                raise ModelError(f"{name} of qconfig is one of {', '.join(allowed)}, not {value!r}{hint}")
        for name in ("nbit_input", "nbit_weight", "nbit_activation"):
            bits = getattr(self, name)
            if not isinstance(bits, int) or not 2 <= bits <= 32:
                raise ModelError(f"{name} of qconfig is a number of bits from 2 to 32, not {bits!r}")
        if not self.global_scale > 0:
            raise ModelError(f"global_scale of qconfig is positive, not {self.global_scale!r}")

    def guard(self, ref_call: Call) -> bool:
        """True if the operator of a call may be quantised."""
        enabled = self.debug_enabled_ops
        return enabled is None or (isinstance(ref_call.op, Op) and ref_call.op.name in list(enabled))

    def get_nbit_by_kind(self, kind: int) -> int:
        """The bits of a kind of tensor."""
        return int(getattr(self, f"nbit_{kind2str(kind)}"))

    def get_dtype_by_kind(self, kind: int) -> str:
        """The type that a kind of tensor is stored in."""
        return str(getattr(self, f"dtype_{kind2str(kind)}"))

    def __enter__(self) -> QConfig:
        """Make this the current configuration."""
        self._entered.append(_CURRENT.set(self))
        return self

    def __exit__(self, *problem: object) -> None:
        """Return to the configuration before."""
        _CURRENT.reset(self._entered.pop())


_CURRENT: ContextVar[QConfig] = ContextVar("tilewright.relay.quantize.qconfig")


def current_qconfig() -> QConfig:
    """The configuration of the innermost ``with qconfig(...)``, or the default."""
    found = _CURRENT.get(None)
    return QConfig() if found is None else found


def qconfig(**kwargs: Any) -> QConfig:
    """A configuration with these fields; the others have their defaults (see ``QConfig``). TVM ignores names that it
    does not know; here they are a warning."""
    known = [one.name for one in fields(QConfig) if not one.name.startswith("_")]
    for name in [name for name in kwargs if name not in known]:
        hint = did_you_mean(name, known)
        warnings.warn(f"qconfig has no field {name!r}, it is ignored{hint}", stacklevel=2)
        del kwargs[name]
    return QConfig(**kwargs)


class QuantizeContext:
    """What one quantisation has seen: how many convolutions, and whether it goes on."""

    def __init__(self) -> None:
        self._convolutions = 0
        self._stopped = False
        self._entered: list[Token[QuantizeContext]] = []

    def check_to_skip(self, ref_call: Call) -> bool:
        """True if a call stays in floating point; convolutions are counted."""
        configuration = current_qconfig()
        name = ref_call.op.name if isinstance(ref_call.op, Op) else ""
        skip = self._stopped
        if name == "nn.conv2d":
            skipped = configuration.skip_conv_layers
            skip = skip or (skipped is not None and self._convolutions in [int(one) for one in skipped])
            self._convolutions += 1
        return skip or (name == "nn.dense" and bool(configuration.skip_dense_layer))

    def stop_quantize(self) -> None:
        """Leave what follows in floating point."""
        self._stopped = True

    def reset(self) -> None:
        """As new."""
        self._convolutions, self._stopped = 0, False

    def __enter__(self) -> QuantizeContext:
        """Start counting from zero."""
        self.reset()
        self._entered.append(_CONTEXT.set(self))
        return self

    def __exit__(self, *problem: object) -> None:
        """Return to the context before."""
        _CONTEXT.reset(self._entered.pop())


_CONTEXT: ContextVar[QuantizeContext] = ContextVar("tilewright.relay.quantize.context")


def quantize_context() -> QuantizeContext:
    """The context of the quantisation that is running, or a new one."""
    found = _CONTEXT.get(None)
    return QuantizeContext() if found is None else found
