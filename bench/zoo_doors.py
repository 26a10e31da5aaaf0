"""The doors by which a PyTorch model comes in, and how its outputs are compared with eager PyTorch's."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

TOLERANCE = 1e-4

THROUGH: dict[str, str] = {
    "code": "llvm",
    "quick": "llvm -opt-level=0",
    "reference": "",
}
"""What runs an imported model, the strictest first: code as users get it, code that LLVM hardly optimises, and the
interpreter, which computes every operator by its NumPy reference. Each with the target that it compiles for."""

Found = tuple[Sequence[Any], str]
Inputs = tuple[torch.Tensor, ...]


class Refused(Exception):
    """PyTorch itself cannot bring the model into the form that a door takes."""


def flat(values: Any) -> list[torch.Tensor]:
    """The tensors of a result, in order."""
    return [one for one in torch.utils._pytree.tree_leaves(values) if isinstance(one, torch.Tensor)]


def compared(found: Sequence[Any], expected: Any) -> dict[str, Any]:
    """Whether outputs agree, and by how much they differ, as a part of the largest value of each."""
    wanted = flat(expected)
    if len(found) < len(wanted):
        return {"status": "differs", "note": f"{len(found)} outputs instead of {len(wanted)}"}
    worst = 0.0
    for have, want in zip(found, wanted, strict=False):
        have = torch.as_tensor(have)
        if have.numel() != want.numel():
            shapes = f"{tuple(have.shape)} instead of {tuple(want.shape)}"
            return {"status": "differs", "note": f"an output of shape {shapes}"}
        if not want.numel():
            continue
        have, want = have.reshape(want.shape).double(), want.double()
        scale = float(want.abs().max())
        distance = float((have - want).abs().max()) / max(scale, 1e-9)
        worst = max(worst, distance if distance == distance else float("inf"))
    return {"status": "ok" if worst <= TOLERANCE else "differs", "difference": worst}


def executed(
    module: Any,
    params: Any,
    inputs: Sequence[torch.Tensor],
    through: str,
    names: Sequence[str] | None = None,
) -> Found:
    """The outputs of a module; through the virtual machine where the graph executor cannot run it."""
    import tilewright as tvm
    from tilewright import relay
    from tilewright.support.errors import LoweringError

    known = params or {}
    free = [one.name_hint for one in module["main"].params if one.name_hint not in known]
    given = dict(zip(names if names is not None else free, inputs, strict=False))
    values = {name: tvm.nd.array(given[name].numpy()) for name in free}
    target = THROUGH[through]
    if not target:
        return _arrays(relay.create_executor("debug", module, params=known).evaluate()(**values)), ""
    with tvm.transform.PassContext(opt_level=3):
        try:
            executor = relay.build(module, target=target, params=known)["default"](tvm.cpu(0))
        except LoweringError as error:
            if "virtual machine" not in str(error):
                raise
            program = relay.vm.compile(module, target=target, params=known)
            result = tvm.runtime.vm.VirtualMachine(program, tvm.cpu(0)).run(**values)
            return _arrays(result), "virtual machine"
    for name, value in values.items():
        if executor.get_input_index(name) >= 0:
            executor.set_input(name, value)
    executor.run()
    return [executor.get_output(place).numpy() for place in range(executor.get_num_outputs())], ""


def _arrays(result: Any) -> list[Any]:
    if hasattr(result, "numpy"):
        return [result.numpy()]
    return [one for field in result for one in _arrays(field)]


def export(model: torch.nn.Module, inputs: Inputs, through: str) -> Found:
    """``torch.export``, then ``from_exported_program``."""
    from tilewright import relay

    try:
        with torch.no_grad():
            program = torch.export.export(model, inputs)
    except Exception as error:
        raise Refused(f"{type(error).__name__}: {error}") from error
    module, params = relay.frontend.from_exported_program(program, freeze_params=True)
    return executed(module, params, inputs, through)


def compile(model: torch.nn.Module, inputs: Inputs, through: str) -> Found:
    """``torch.compile``; the note has what was left to PyTorch."""
    from tilewright.driver.torch_backend import tilewright

    if not THROUGH[through]:
        raise ValueError("torch.compile runs compiled code only: use --through code or quick for it")
    compiled = torch.compile(model, backend=tilewright, options={"target": THROUGH[through]})
    with warnings.catch_warnings(record=True) as caught, torch.no_grad():
        warnings.simplefilter("always")
        # The second call is on the code alone: nothing is traced in it.
        compiled(*inputs)
        found = flat(compiled(*inputs))
    left = [str(one.message) for one in caught if "leaves to PyTorch" in str(one.message)]
    return found, "; ".join(dict.fromkeys(left))


def script(model: torch.nn.Module, inputs: Inputs, through: str) -> Found:
    """``torch.jit.trace``, then ``from_pytorch``."""
    from tilewright import relay

    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            traced = torch.jit.trace(model, inputs, strict=False, check_trace=False)
    except Exception as error:
        raise Refused(f"{type(error).__name__}: {error}") from error
    names = [f"input{place}" for place in range(len(inputs))]
    kinds = [
        (name, (tuple(value.shape), str(value.dtype).removeprefix("torch.")))
        for name, value in zip(names, inputs, strict=True)
    ]
    module, params = relay.frontend.from_pytorch(traced, kinds)
    return executed(module, params, inputs, through, names)


def onnx(model: torch.nn.Module, inputs: Inputs, through: str) -> Found:
    """ONNX, by either of PyTorch's exporters, then ``from_onnx``."""
    from tilewright import relay

    names = [f"input{place}" for place in range(len(inputs))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        reasons = []
        for dynamo in (False, True):
            try:
                with torch.no_grad(), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    torch.onnx.export(
                        model,
                        inputs,
                        str(path),
                        dynamo=dynamo,
                        opset_version=18 if dynamo else 17,
                        input_names=names,
                    )
                break
            except Exception as error:  # noqa: BLE001 - the other exporter may take the model
                reasons.append(f"{type(error).__name__}: {error}"[:200])
        else:
            raise Refused(" / ".join(reasons))
        module, params = relay.frontend.from_onnx(str(path), freeze_params=True)
    return executed(module, params, inputs, through, names)


DOORS: dict[str, Callable[[torch.nn.Module, Inputs, str], Found]] = {
    "export": export,
    "compile": compile,
    "script": script,
    "onnx": onnx,
}
