"""Keras as a format of models: ``from_keras``, and files that Keras saves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.tensor_type import TensorType
from tilewright.relay import transpose
from tilewright.relay.expr import Tuple, Var
from tilewright.relay.expr_functor import substitute
from tilewright.relay.frontend.common import Unsupported, check_input_names, input_type
from tilewright.relay.frontend.common.finishing import finished
from tilewright.relay.frontend.common.graph_node import Scope
from tilewright.relay.frontend.common.unsupported import require_supported
from tilewright.relay.frontend.keras.importer import ModelImporter, flat, functional_form, list_unsupported
from tilewright.relay.frontend.keras.package import keras_package
from tilewright.relay.frontend.registry import Frontend, Imported
from tilewright.relay.frontend.tensorflow.format import converted
from tilewright.relay.frontend.tensorflow.reading import frozen_function
from tilewright.relay.function import Function
from tilewright.relay.infer import infer_module, type_of
from tilewright.relay.transform import ConvertLayout
from tilewright.support.errors import ModelError
from tilewright.support.recursion import recursion_room

_HDF5: Final = b"\x89HDF\r\n\x1a\n"
_NATIVE: Final = ("NHWC", "NWC", "NDHWC")
"""Layouts that leave a model as it is: channels last."""
_TURNED: Final = {"nn.conv2d": ["NCHW", "default"], "nn.max_pool2d": ["NCHW"], "nn.avg_pool2d": ["NCHW"]}


def from_keras(
    model: Any, shape: Mapping[str, Any] | None = None, layout: str = "NCHW"
) -> tuple[IRModule, dict[str, Any]]:
    """A module and its parameters from a Keras 3 model.

    ``shape`` gives the shapes of inputs by name, in the layout asked for; an open batch is 1 without it. With
    ``layout="NCHW"`` images come in and go out with their channels first, and convolutions are turned to that layout
    once; with ``"NHWC"`` (or ``"NWC"``, ``"NDHWC"``) the model stays as it is. Functional and sequential models are
    converted layer by layer. Models that are programs (subclasses of ``keras.Model``), and models with layers that
    have no converter, are traced by TensorFlow, which then has to be Keras' backend.
    """
    keras = keras_package()
    if not isinstance(model, keras.Model):
        raise ModelError(f"a Keras model is a keras.Model, not a {type(model).__name__}")
    if layout not in ("NCHW", *_NATIVE):
        raise ModelError(f"the layout is NCHW or one of {', '.join(_NATIVE)}, not {layout!r}")
    missing = list_unsupported(model)
    with recursion_room():
        if missing:
            module, params = _traced(model, dict(shape or {}), missing, layout)
        else:
            module, params = _converted(model, dict(shape or {}), layout)
    if layout == "NCHW":
        module = ConvertLayout(_TURNED)(module)
    return module, params


def _converted(model: Any, shapes: Mapping[str, Any], layout: str) -> tuple[IRModule, dict[str, Any]]:
    graph = functional_form(model)
    names = [str(tensor.name) for tensor in graph.inputs]
    check_input_names(shapes, names, names)
    scope = Scope(IRModule())
    variables: list[Var] = []
    given: list[RelayExpr] = []
    for tensor, name in zip(graph.inputs, names, strict=True):
        sizes = [1 if size is None and place == 0 else size for place, size in enumerate(tensor.shape)]
        turned = layout == "NCHW" and len(sizes) == 4
        if turned:
            sizes = [sizes[0], sizes[3], sizes[1], sizes[2]]
        known = shapes.get(name, sizes)
        if any(size is None for size in known):
            raise ModelError(f"the input {name!r} has the shape {list(known)}: give all of it with shape=")
        variables.append(Var(name, input_type(name, list(known), str(tensor.dtype))))
        given.append(transpose(variables[-1], [0, 2, 3, 1]) if turned else variables[-1])
    outputs = flat(ModelImporter(scope).model(model, given))
    if layout == "NCHW":
        outputs = [_channels_first(scope, one) for one in outputs]
    labels = [str(tensor.name) for tensor in graph.outputs]
    return finished(scope.module, variables, outputs, labels, scope.params)


def _channels_first(scope: Scope, data: Any) -> Any:
    kind = type_of(data, scope.module)
    return transpose(data, [0, 3, 1, 2]) if isinstance(kind, TensorType) and len(kind.shape) == 4 else data


def _traced(
    model: Any, shapes: Mapping[str, Any], missing: Sequence[Unsupported], layout: str
) -> tuple[IRModule, dict[str, Any]]:
    """A model through TensorFlow's graph of it."""
    keras = keras_package()
    if keras.backend.backend() != "tensorflow":
        require_supported(missing)
    if not getattr(model, "inputs", None) and not shapes:
        raise ModelError(
            f"the model {model.name!r} is a program whose inputs are not known: call it once, or give shape= with the "
            "shapes of its inputs in order"
        )
    import tensorflow

    if layout == "NCHW":
        shapes = {name: _channels_last_shape(size) for name, size in shapes.items()}
    if getattr(model, "inputs", None):
        specs = [
            tensorflow.TensorSpec(
                shapes.get(
                    one.name,
                    [1 if size is None and not place else size for place, size in enumerate(one.shape)],
                ),
                one.dtype,
                name=str(one.name).replace(":", "_"),
            )
            for one in model.inputs
        ]
    else:
        specs = [tensorflow.TensorSpec(size, "float32", name=name) for name, size in shapes.items()]

    def run(*inputs: Any) -> Any:
        return model(inputs[0] if len(inputs) == 1 else list(inputs), training=False)

    function = tensorflow.function(run).get_concrete_function(*specs)
    module, params = converted(frozen_function(function), {})
    return (_turned(module, params), params) if layout == "NCHW" else (module, params)


def _channels_last_shape(shape: Any) -> list[Any]:
    sizes = list(shape)
    return [sizes[0], sizes[2], sizes[3], sizes[1]] if len(sizes) == 4 else sizes


def _turned(module: IRModule, params: Mapping[str, Any]) -> IRModule:
    """The module with images whose channels come first."""
    main = module["main"]
    assert isinstance(main, Function)
    turned: dict[Var, RelayExpr] = {}
    taken: list[Var] = []
    for variable in main.params:
        kind = variable.type_annotation
        if variable.name_hint in params or not isinstance(kind, TensorType) or len(kind.shape) != 4:
            taken.append(variable)
            continue
        sizes = [kind.shape[place] for place in (0, 3, 1, 2)]
        taken.append(Var(variable.name_hint, TensorType(sizes, kind.dtype)))
        turned[variable] = transpose(taken[-1], [0, 2, 3, 1])
    outputs = main.body.fields if isinstance(main.body, Tuple) else [main.body]
    kinds = [type_of(one, module) for one in outputs]
    made = [
        transpose(one, [0, 3, 1, 2]) if isinstance(kind, TensorType) and len(kind.shape) == 4 else one
        for one, kind in zip(outputs, kinds, strict=True)
    ]
    body = Tuple(made) if isinstance(main.body, Tuple) else made[0]
    module["main"] = Function(taken, substitute(body, turned), attrs=main.attrs)
    return infer_module(module)


def load(path: str, shape: Mapping[str, Any] | None = None, **options: Any) -> Imported:
    """Read a file that ``model.save`` wrote; the options are those of ``relay.frontend.from_keras``.

    Lambdas and other code that a file may hold are not executed.
    """
    keras = keras_package()
    try:
        model = keras.saving.load_model(path, compile=False, safe_mode=True)
    except Exception as error:
        raise ModelError(f"Keras cannot load {path}: {error}") from error
    return from_keras(model, shape, **options)


def is_hdf5(head: bytes) -> bool:
    """True if a file begins as those of the older format do."""
    return head.startswith(_HDF5)


def unsupported_in(path: str) -> Sequence[Unsupported]:
    """The layers of a model that cannot be converted one by one."""
    return list_unsupported(keras_package().saving.load_model(path, compile=False, safe_mode=True))


FRONTEND: Final = Frontend("keras", ("keras", "h5", "hdf5"), load, is_hdf5, unsupported_in)
