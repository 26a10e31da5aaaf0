"""A model in which every layer can be quantised or not from run to run, without compiling it again.

Data of a layer passes ``qnn.simulated_quantize``, whose integer type is an input of the program ("disable" for floats),
and so do tensors between layers; weights and biases are inputs as well. Where layers may be computed in 16-bit floats,
another input says whether data are rounded to these.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.relay.expr import Call, Tuple, Var, const, var
from tilewright.relay.op.calls import call
from tilewright.relay.qnn.op.simulated import simulated_dequantize, simulated_quantize
from tilewright.relay.quantize.dialect import HALF, LayerScheme
from tilewright.relay.quantize.observe import Array, Observed, Sample
from tilewright.relay.quantize.scheme import Affine
from tilewright.relay.quantize.tensors import TensorRewriter, Tensors, moved_by
from tilewright.runtime.ndarray import numpy_dtype
from tilewright.support.dtype import DataType
from tilewright.topi.nn.qnn import SQNN_DTYPE_TO_CODE


class _Switched(TensorRewriter):
    """Puts switches in front of layers, and behind what makes tensors that are rounded between them."""

    def __init__(self, tensors: Tensors, schemes: Mapping[str, LayerScheme], with_halves: bool) -> None:
        layers = tensors.layers
        super().__init__(tensors, {one.name for one in layers})
        self.with_halves = with_halves
        self.rounded_at: dict[RelayExpr, int] = {}
        self.places = {one.product: place for place, one in enumerate(layers)}
        self.biases = {one.bias: place for place, one in enumerate(layers) if one.bias is not None}
        self.layers, self.schemes = layers, schemes
        self.variables: list[Var] = []

    def variable(self, name: str, shape: Sequence[int], dtype: str = "float32") -> Var:
        """A new input."""
        made = var(name, shape=tuple(shape), dtype=dtype)
        self.variables.append(made)
        return made

    def rounding(self, new: RelayExpr, old: RelayExpr, affine: Affine) -> RelayExpr:
        """What has moved has been rounded before."""
        if moved_by(old):
            return new
        place = self.rounded_at.setdefault(old, len(self.rounded_at))
        return self.simulated(new, affine, self.variable(f"tensor_{place}", (), "int32"))

    def simulated(self, data: RelayExpr, affine: Affine, code: Var) -> RelayExpr:
        """Numbers as integers of a type stand for them, which is known when the program runs."""
        scale, zero = const(np.float32(affine.scale)), const(affine.zero, "int32")
        data = simulated_quantize(data, scale, zero, out_dtype=code)
        return simulated_dequantize(data, scale, zero, in_dtype=code)

    def visit_call(self, expr: Call) -> RelayExpr:
        """A layer with a switch in front of it, its bias, or what is between layers."""
        if expr in self.biases:
            place = self.biases[expr]
            bias = self.variable(f"bias_{place}", [int(one) for one in expr.args[1].data.shape])  # type: ignore[attr-defined]
            return call("nn.bias_add", self.visit(expr.args[0]), bias, axis=self.layers[place].channel_axis)
        if expr not in self.places:
            return super().visit_call(expr)
        place = self.places[expr]
        layer, affine = self.layers[place], self.schemes[self.layers[place].name].data
        code = self.variable(f"switch_{place}", (), "int32")
        data: RelayExpr = self.exact(expr.args[0])
        if self.with_halves:
            rounded = call("cast", call("cast", data, dtype=HALF), dtype="float32")
            data = call("where", self.variable(f"half_{place}", (), "bool"), rounded, data)
        data = self.simulated(data, affine, code)
        weight = self.variable(f"weight_{place}", [int(one) for one in layer.weight.data.shape])
        return expr.replace(args=(data, weight))


class Simulation:
    """Runs a model with any of its layers quantised, or ``with_halves`` in 16-bit floats."""

    def __init__(
        self,
        mod: IRModule,
        tensors: Tensors,
        schemes: Mapping[str, LayerScheme],
        target: Any = None,
        with_halves: bool = False,
    ) -> None:
        main = mod["main"]
        layers = tensors.layers
        switched = _Switched(tensors, schemes, with_halves)
        body = switched.visit(main.body)
        outputs = list(body.fields) if isinstance(body, Tuple) else [body]
        observed = [switched.visit(one.result) for one in layers]
        self.tensors, self.layers, self.schemes = tensors, layers, dict(schemes)
        self.rounded_at = switched.rounded_at
        self.program = Observed([*main.params, *switched.variables], [*observed, *outputs], target)
        self.with_halves = with_halves
        self.kinds: dict[int, str] = {}
        """What tensors between layers are rounded to."""
        self.states: dict[str, tuple[bool, bool, bool]] = {}
        """Of each layer: whether it is quantised, in 16-bit floats, and has a corrected bias."""

    def switch(
        self,
        quantised: Collection[str],
        corrected: bool = False,
        halves: Collection[str] = (),
        between: bool = True,
    ) -> None:
        """Choose the layers that are quantised in the runs that follow, whether biases are corrected, and whether what
        is ``between`` these layers is rounded as well; those in ``halves`` are computed in 16-bit floats."""
        rounded_tensors = self.tensors.rounded(quantised)[0] if between else set()
        for tensor, place in self.rounded_at.items():
            kind = self.tensors.affine(tensor).dtype if tensor in rounded_tensors else "disable"
            if self.kinds.get(place) != kind:
                self.kinds[place] = kind
                self.program.keep(f"tensor_{place}", np.array(SQNN_DTYPE_TO_CODE[kind], np.int32))
        wanted, rounded = set(quantised), set(halves)
        for place, layer in enumerate(self.layers):
            on, half = layer.name in wanted, layer.name in rounded
            if self.states.get(layer.name) == (on, half, corrected):
                continue
            self.states[layer.name] = (on, half, corrected)
            scheme = self.schemes[layer.name]
            kind = scheme.data.dtype if on else "disable"
            self.program.keep(f"switch_{place}", np.array(SQNN_DTYPE_TO_CODE[kind], np.int32))
            if self.with_halves:
                self.program.keep(f"half_{place}", np.array(half))
            weight = scheme.weight.real().astype(np.float32) if on else layer.weight.data.numpy()
            if half:
                weight = weight.astype(numpy_dtype(DataType(HALF))).astype(np.float32)
            self.program.keep(f"weight_{place}", weight)
            if layer.bias is not None:
                bias = layer.bias.args[1].data.numpy()  # type: ignore[attr-defined]
                if on and corrected and scheme.correction is not None:
                    bias = (bias + scheme.correction).astype(np.float32)
                self.program.keep(f"bias_{place}", bias)

    def run(self, sample: Sample) -> tuple[list[Array], list[Array]]:
        """The results of the layers, and the outputs of the model."""
        values = self.program.run(sample)
        return values[: len(self.layers)], values[len(self.layers) :]
