"""Tilewright as a backend of ONNX: ``prepare`` a model, ``run`` it on NumPy arrays.

    from tilewright.relay.frontend.onnx import backend
    outputs = backend.prepare(model).run(inputs)

A model with static shapes and without control flow is compiled for the graph executor, every other for the virtual
machine. Where the conversion needs more than the model says (the length of a sequence, an axis given by an input), the
model is compiled when inputs are available, once for each different answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.ir.transform import PassContext
from tilewright.relay.backend.machine import needs_machine
from tilewright.relay.build_module import create_executor
from tilewright.relay.frontend.common.needs import ShapeNeeded, ValueNeeded
from tilewright.relay.frontend.onnx.low_precision import LOW_PRECISION_TYPES, from_carrier, to_carrier
from tilewright.relay.frontend.onnx.model import from_onnx
from tilewright.relay.frontend.onnx.reading import read_model
from tilewright.relay.frontend.onnx.tensors import onnx_package
from tilewright.relay.infer import infer_module
from tilewright.runtime.container import ADT
from tilewright.runtime.ndarray import NDArray
from tilewright.support.errors import ModelError, TargetError

onnx = onnx_package()
from onnx.backend.base import Backend, BackendRep  # noqa: E402

Program = Callable[..., Any]
EXECUTORS = ("graph", "vm", "debug")


class TilewrightBackendRep(BackendRep):  # type: ignore[misc]
    """A model (a ModelProto, the bytes of one, or a path) that is ready to run.

    ``executor`` is "graph", "vm" or "debug" (the reference interpreter); None lets the model decide. ``chosen`` names
    the executor of what was compiled last.
    """

    def __init__(self, model: Any, executor: str | None = None, opt_level: int = 3) -> None:
        if executor is not None and executor not in EXECUTORS:
            raise ModelError(f"the executors are {', '.join(EXECUTORS)}, not {executor!r}")
        self._source = model
        with read_model(model) as read:
            self.model = read.proto
        self.executor = executor
        self.opt_level = opt_level
        self.chosen = ""
        graph = self.model.graph
        constants = {tensor.name for tensor in graph.initializer}
        constants |= {tensor.values.name for tensor in graph.sparse_initializer}
        self._inputs = [info for info in graph.input if info.name not in constants]
        self._needs_shapes = False
        self._needed_values: list[str] = []
        self._programs: dict[Any, tuple[list[str], Program]] = {}
        try:
            self._programs[()] = self._compiled({}, {})
        except ShapeNeeded:
            self._needs_shapes = True
        except ValueNeeded as needed:
            known = {info.name for info in self._inputs}
            self._needed_values += [name for name in needed.inputs if name in known]

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The outputs for inputs in the order of the model's, or by name."""
        given = self._by_name(inputs)
        names, program = self._program(given)
        arguments: dict[str, Any] = {}
        for info in self._inputs:
            _spread(info.name, info.type, given[info.name], arguments)
        made = program(*[arguments[name] for name in names])
        outputs = self.model.graph.output
        each = [made] if len(outputs) == 1 else list(made)
        return tuple(_as_arrays(value, info.type) for value, info in zip(each, outputs, strict=True))

    def _by_name(self, inputs: Any) -> dict[str, Any]:
        if isinstance(inputs, Mapping):
            given = dict(inputs)
        else:
            values = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
            if len(values) > len(self._inputs):
                raise ModelError(f"the model has {len(self._inputs)} inputs, {len(values)} were given")
            given = {info.name: value for info, value in zip(self._inputs, values, strict=False)}
        missing = [info.name for info in self._inputs if info.name not in given]
        if missing:
            raise ModelError(f"no value for the inputs {', '.join(missing)}")
        return given

    def _program(self, given: dict[str, Any]) -> tuple[list[str], Program]:
        """The program for such inputs, compiled on first use."""
        while True:
            # An optional that is empty is another program than one that is not.
            shapes = {
                name: _shape(value) for name, value in given.items() if self._needs_shapes or value is None
            }
            values = {name: np.asarray(given[name]) for name in self._needed_values}
            key = _key(shapes, values)
            if key in self._programs:
                return self._programs[key]
            try:
                self._programs[key] = self._compiled(shapes, values)
            except ShapeNeeded as needed:
                if self._needs_shapes:
                    # The shape is computed from values.
                    self._add_needed((), given, needed)
                self._needs_shapes = True
            except ValueNeeded as needed:
                self._add_needed(needed.inputs, given, needed)

    def _add_needed(self, names: Sequence[str], given: Mapping[str, Any], error: ModelError) -> None:
        """Values of these inputs will be constants; where they are none, those of all that are small and no floats."""
        known = {info.name for info in self._inputs} - set(self._needed_values)
        found = [name for name in names if name in known]
        if not found:
            found = [
                name
                for name, value in given.items()
                if name in known
                and isinstance(value, np.ndarray)
                and value.dtype.kind in "iub"
                and value.size <= 64
            ]
        if not found:
            raise error
        self._needed_values += found

    def _compiled(self, shapes: Mapping[str, Any], values: Mapping[str, Any]) -> tuple[list[str], Program]:
        module, params = from_onnx(self._source, dict(shapes), convert_config={"values": values})
        module = infer_module(module)
        main = module["main"]
        names = [one.name_hint for one in main.params if one.name_hint not in params]
        self.chosen = self.executor or ("vm" if needs_machine(module) else "graph")
        with PassContext(opt_level=self.opt_level):
            return names, create_executor(self.chosen, module, params=params).evaluate()


class TilewrightBackend(Backend):  # type: ignore[misc]
    """The adapter."""

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> TilewrightBackendRep:
        """Compile a model; ``executor`` and ``opt_level`` say how."""
        if not cls.supports_device(device):
            raise TargetError(f"the ONNX backend runs on CPU, not on {device}")
        return TilewrightBackendRep(model, kwargs.get("executor"), int(kwargs.get("opt_level", 3)))

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        """Compile a model and run it once."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: Any,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[Any, tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Run one node. ``opset_version`` is that of its domain; the newest without it."""
        helper = onnx.helper
        arrays = [np.asarray(value) for value in inputs]
        names = [name for name in node.input if name]
        infos = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
            for name, value in zip(names, arrays, strict=True)
        ]
        results = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        graph = helper.make_graph([node], "node", infos, results)
        version = kwargs.pop("opset_version", None) or onnx.defs.onnx_opset_version()
        opset = helper.make_opsetid(node.domain, int(version))
        return cls.run_model(helper.make_model(graph, opset_imports=[opset]), arrays, device, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """True for the CPU."""
        return device.split(":")[0] == "CPU"


prepare = TilewrightBackend.prepare
run_model = TilewrightBackend.run_model
run_node = TilewrightBackend.run_node
supports_device = TilewrightBackend.supports_device


def _shape(value: Any) -> Any:
    """The shape of an input as ``from_onnx`` takes it."""
    if value is None:
        return None
    return [_shape(item) for item in value] if isinstance(value, (list, tuple)) else np.shape(value)


def _key(shapes: Mapping[str, Any], values: Mapping[str, Any]) -> Any:
    parts = [(name, repr(shape)) for name, shape in shapes.items()]
    return (
        *parts,
        *((name, str(value.dtype), value.shape, value.tobytes()) for name, value in values.items()),
    )


def _spread(name: str, kind: Any, value: Any, into: dict[str, Any]) -> None:
    """The arguments that an input becomes: one for a tensor, one for each element of a sequence."""
    which = kind.WhichOneof("value")
    if which == "optional_type":
        if value is not None:
            _spread(name, kind.optional_type.elem_type, value, into)
    elif which == "sequence_type":
        for position, item in enumerate(value):
            _spread(f"{name}.{position}", kind.sequence_type.elem_type, item, into)
    else:
        array = np.asarray(value)
        low_precision = LOW_PRECISION_TYPES.get(kind.tensor_type.elem_type)
        into[name] = array if low_precision is None else to_carrier(array, low_precision)


def _as_arrays(value: Any, kind: Any) -> Any:
    """A result as an array, or a list of arrays where it is a sequence."""
    which = kind.WhichOneof("value")
    if which == "optional_type":
        return _as_arrays(value, kind.optional_type.elem_type)
    if isinstance(value, (list, tuple, ADT)):
        inner = kind.sequence_type.elem_type if which == "sequence_type" else kind
        return [_as_arrays(item, inner) for item in value]
    array = value.numpy() if isinstance(value, NDArray) else np.asarray(value)
    return from_carrier(array, kind.tensor_type.elem_type)


__all__ = [
    "TilewrightBackend",
    "TilewrightBackendRep",
    "needs_machine",
    "prepare",
    "run_model",
    "run_node",
    "supports_device",
]
