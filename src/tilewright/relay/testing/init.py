"""Initial parameters of models, chosen by their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.ir.module import IRModule
from tilewright.ir.tensor_type import TensorType
from tilewright.relay.function import Function
from tilewright.relay.op.shapes import dims
from tilewright.relay.transform import InferType
from tilewright.runtime import ndarray
from tilewright.runtime.ndarray import NDArray, numpy_dtype
from tilewright.support.errors import TilewrightError

Array = np.ndarray[Any, Any]


class Initializer:
    """Fills arrays by the end of a parameter's name; a subclass says how weights are drawn."""

    def __init__(self, **kwargs: Any) -> None:
        self._kwargs = kwargs
        self.generator = np.random.default_rng(0)

    def seed(self, seed: int) -> None:
        """Start the random numbers anew."""
        self.generator = np.random.default_rng(seed)

    def __call__(self, desc: str, arr: Array) -> None:
        """Fill ``arr``, the parameter called ``desc``."""
        if "upsampling" in desc:
            self._init_bilinear(arr)
            return
        for ending, fill in (
            ("weight", self._init_weight),
            ("bias", self._init_zero),
            ("gamma", self._init_one),
            ("beta", self._init_zero),
            ("mean", self._init_zero),
            ("var", self._init_one),
            ("min", self._init_zero),
            ("max", self._init_one),
        ):
            if desc.endswith(ending):
                fill(arr)
                return
        self._init_default(desc, arr)

    def _init_zero(self, arr: Array) -> None:
        arr[...] = 0

    def _init_one(self, arr: Array) -> None:
        arr[...] = 1

    def _init_bilinear(self, arr: Array) -> None:
        """The kernel of a transposed convolution that enlarges images linearly."""
        rows, columns = arr.shape[-2:]
        half = (columns + 1) // 2
        centre = half - 1 if columns % 2 else half - 0.5
        row = 1 - np.abs(np.arange(rows) - centre) / half
        column = 1 - np.abs(np.arange(columns) - centre) / half
        arr[...] = row[:, None] * column[None, :]

    def _init_weight(self, arr: Array) -> None:
        raise NotImplementedError(f"{type(self).__name__} does not say how weights are drawn")

    def _init_default(self, desc: str, arr: Array) -> None:
        raise ValueError(
            f"no way to fill parameter {desc!r}: names end in weight, bias, gamma, beta, mean, var, min or max"
        )


class Xavier(Initializer):
    """Weights whose spread keeps that of the activations: ``magnitude`` over the number of inputs ("in"), of outputs
    ("out"), or their mean ("avg"); drawn evenly ("uniform") or normally ("gaussian")."""

    def __init__(self, rnd_type: str = "uniform", factor_type: str = "avg", magnitude: float = 3) -> None:
        super().__init__(rnd_type=rnd_type, factor_type=factor_type, magnitude=magnitude)
        if rnd_type not in ("uniform", "gaussian"):
            raise ValueError(f"rnd_type is uniform or gaussian, not {rnd_type!r}")
        if factor_type not in ("avg", "in", "out"):
            raise ValueError(f"factor_type is avg, in or out, not {factor_type!r}")
        self.rnd_type = rnd_type
        self.factor_type = factor_type
        self.magnitude = float(magnitude)

    def _init_weight(self, arr: Array) -> None:
        if arr.ndim < 2:
            raise ValueError(f"Xavier is for weights of two dimensions or more, not of shape {arr.shape}")
        window = float(np.prod(arr.shape[2:]))
        inputs, outputs = arr.shape[1] * window, arr.shape[0] * window
        factor = {"avg": (inputs + outputs) / 2, "in": inputs, "out": outputs}[self.factor_type]
        scale = np.sqrt(self.magnitude / factor)
        if self.rnd_type == "uniform":
            arr[...] = self.generator.uniform(-scale, scale, arr.shape)
        else:
            arr[...] = self.generator.normal(0, scale, arr.shape)


class Constant(Initializer):
    """Every parameter is one number."""

    def __init__(self, value: float) -> None:
        super().__init__(value=value)
        self.value = value

    def __call__(self, desc: str, arr: Array) -> None:
        """Fill ``arr``."""
        arr[...] = self.value


def create_workload(
    net: Function | IRModule, initializer: Callable[[str, Array], None] | None = None, seed: int = 0
) -> tuple[IRModule, dict[str, NDArray]]:
    """A module whose ``main`` is the model, with types, and values for every parameter but "data"."""
    module = InferType()(net if isinstance(net, IRModule) else IRModule.from_expr(net))
    chosen = initializer if initializer is not None else Xavier()
    np.random.seed(seed)  # for an initializer that is a plain function
    if isinstance(chosen, Initializer):
        chosen.seed(seed)
    made: dict[str, NDArray] = {}
    for parameter in module["main"].params:
        if parameter.name_hint == "data":
            continue
        kind = parameter.checked_type
        if not isinstance(kind, TensorType):
            raise TilewrightError(f"parameter {parameter.name_hint} is {kind}, not a tensor")
        values = np.zeros(known_shape(parameter.name_hint, kind), dtype="float64")
        chosen(parameter.name_hint, values)
        made[parameter.name_hint] = ndarray.array(values.astype(numpy_dtype(kind.dtype)))
    return module, made


def known_shape(name: str, kind: TensorType) -> tuple[int, ...]:
    """The shape of a parameter as Python numbers."""
    shape = tuple([extent for extent in dims(kind) if isinstance(extent, int)])
    if len(shape) != len(kind.shape):
        raise TilewrightError(f"the shape of {name} is not known, so no values can be made for it")
    return shape
