"""From a graph of ATen operators to code: conversion, precision, and the executor that suits its sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from tilewright.driver.torch_backend.options import BackendOptions
from tilewright.driver.torch_backend.signature import Signature
from tilewright.ir.base import RelayExpr
from tilewright.ir.expr import IntImm
from tilewright.ir.module import IRModule
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.transform import PassContext
from tilewright.ir.type import TupleType
from tilewright.relay import op as relay_op
from tilewright.relay.expr import Tuple, TupleGetItem
from tilewright.relay.frontend.torch import from_fx
from tilewright.relay.frontend.torch.dtypes import dtype_name
from tilewright.relay.infer import infer_module
from tilewright.relay.transform import ToMixedPrecision
from tilewright.runtime.device import Device, cpu, cuda
from tilewright.support.errors import TargetError, TilewrightError
from tilewright.target import Target

_QUIET = 2
_DEVICES = {"cpu": (cpu, "llvm"), "cuda": (cuda, "cuda")}


def converted(
    graph_module: torch.fx.GraphModule,
    signature: Signature,
    weights: Mapping[str, torch.Tensor],
    options: BackendOptions,
) -> IRModule:
    """The module of a graph, with these weights as constants; its results have the types that the graph says."""
    module, _ = from_fx(graph_module, weights, freeze_params=True)
    if options.mixed_precision is not None:
        module = ToMixedPrecision(options.mixed_precision, _QUIET)(module)
        module = _with_result_types(infer_module(module), signature)
    _check_results(module, signature)
    return module


def place_of(signature: Signature, options: BackendOptions) -> tuple[Device, Target]:
    """The device that a graph's tensors are on, and the target to compile it for."""
    values = [*signature.examples, *(output.value for output in signature.outputs)]
    places = {value.device for value in values if isinstance(value, torch.Tensor)}
    # Numbers in tensors without dimensions may be on the CPU in PyTorch, whatever the others are on.
    places = {place for place in places if place.type != "cpu"} or places
    if len(places) > 1:
        raise TargetError(
            f"the graph has tensors on several devices: {', '.join(sorted(map(str, places)))}; move all to one of them"
        )
    place = places.pop() if places else torch.device("cpu")
    if place.type not in _DEVICES:
        raise TargetError(
            f"the graph has tensors on {place}, for which there is no code generator: the devices are "
            f"{', '.join(_DEVICES)}"
        )
    make, default = _DEVICES[place.type]
    chosen = default if options.target is None else options.target
    return make(place.index or 0), chosen if isinstance(chosen, Target) else Target(chosen)


def pass_context(options: BackendOptions) -> PassContext:
    """The context that the passes run under."""
    return PassContext(opt_level=options.opt_level, config=dict(options.config))


def _with_result_types(module: IRModule, signature: Signature) -> IRModule:
    """The module with its results cast to the types that the graph has for them."""
    main = module["main"]
    kind = main.checked_type.ret_type
    fields: Sequence[RelayExpr]
    if isinstance(kind, TupleType):
        fields = [TupleGetItem(main.body, place) for place in range(len(kind.fields))]
        if isinstance(main.body, Tuple):
            fields = list(main.body.fields)
    else:
        fields = [main.body]
    wanted = _wanted_types(signature)
    cast = [relay_op.cast(one, wanted[place]) if place in wanted else one for place, one in enumerate(fields)]
    body = Tuple(cast) if isinstance(kind, TupleType) else cast[0]
    made = module.copy()
    made["main"] = main.replace(body=body, ret_type=None)
    return infer_module(made)


def _wanted_types(signature: Signature) -> dict[int, str]:
    return {
        output.position: dtype_name(output.value.dtype)
        for output in signature.outputs
        if output.position is not None and isinstance(output.value, torch.Tensor)
    }


def _check_results(module: IRModule, signature: Signature) -> None:
    """Whether the results are what the graph says, before anything relies on it."""
    kind = module["main"].checked_type.ret_type
    types: Sequence[Any] = kind.fields if isinstance(kind, TupleType) else [kind]
    for output in signature.outputs:
        if not output.is_tensor:
            continue
        found = types[output.position]  # type: ignore[index]
        assert isinstance(found, TensorType)
        dtype = dtype_name(output.value.dtype)
        known = [
            (have.value, size)
            for have, size in zip(found.shape, output.value.shape, strict=False)
            if isinstance(have, IntImm) and isinstance(size, int)
        ]
        rank = len(found.shape) == len(output.value.shape)
        if not rank or str(found.dtype) != dtype or any(have != size for have, size in known):
            raise TilewrightError(
                f"result {output.position} of the graph is {dtype}{list(output.value.shape)} in PyTorch, and its "
                f"conversion is {found}"
            )
