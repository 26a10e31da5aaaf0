"""Exported programs on the reference interpreter, against eager PyTorch."""

import numpy as np
import torch

import tilewright as tvm
from tilewright import relay
from tilewright.relay.frontend import from_exported_program
from tilewright.runtime.ndarray import numpy_dtype
from tilewright.support.dtype import DataType


class Functions(torch.nn.Module):
    """Several functions of the same inputs, so that one export serves for all."""

    def __init__(self, functions):
        super().__init__()
        self.functions = functions

    def forward(self, *inputs):
        """All results, one after another."""
        return [function(*inputs) for function in self.functions]


def array(tensor):
    """The elements; those of bfloat16 in the type that NumPy has for them."""
    tensor = tensor.detach().resolve_neg()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.uint16).numpy().view(numpy_dtype(DataType("bfloat16")))
    return tensor.numpy()


def run(module, params, inputs, executor="debug"):
    """The results as a list of arrays."""
    function = relay.create_executor(executor, mod=module, device=tvm.cpu(), target="llvm").evaluate()
    result = function(*[tvm.nd.array(array(one)) for one in inputs], **params)
    return [one.numpy() for one in ([result] if hasattr(result, "numpy") else result)]


def leaves(nested):
    """The tensors of a nested result."""
    return [one for one in torch.utils._pytree.tree_leaves(nested) if one is not None]


def differences(found, wanted, names, rtol=1e-5, atol=1e-5):
    """The names of results whose type, shape or values are not those of PyTorch."""
    assert len(found) == len(wanted) == len(names)
    wrong = []
    for name, one, other in zip(names, found, wanted, strict=True):
        expected = array(other) if isinstance(other, torch.Tensor) else np.asarray(other)
        if one.shape != expected.shape or one.dtype != expected.dtype:
            wrong.append(f"{name}: {one.dtype}{one.shape} for {expected.dtype}{expected.shape}")
        elif not np.allclose(
            one.astype("float64"), expected.astype("float64"), rtol=rtol, atol=atol, equal_nan=True
        ):
            wrong.append(f"{name}: {one} for {expected}")
    return wrong


def check(model, inputs, executor="debug", dynamic_shapes=None, rtol=1e-5, atol=1e-5):
    """A model gives what it gives in eager PyTorch; returns its module."""
    copies = [one.clone() for one in inputs]
    with torch.no_grad():
        program = torch.export.export(model.eval(), tuple(inputs), dynamic_shapes=dynamic_shapes)
        module, params = from_exported_program(program)
        found = run(module, params, inputs, executor)
        wanted = leaves(model(*copies))
    assert not differences(found[: len(wanted)], wanted, range(len(wanted)), rtol, atol)
    return module


def check_all(functions, inputs, **options):
    """Functions by name give what they give in eager PyTorch; one failure names all that do not."""
    model = Functions(list(functions.values()))
    with torch.no_grad():
        wanted = [leaves(function(*inputs)) for function in functions.values()]
        program = torch.export.export(model, tuple(inputs))
        module, params = from_exported_program(program)
    found = run(module, params, inputs)
    names = [name for name, results in zip(functions, wanted, strict=True) for _ in results]
    flat = [one for results in wanted for one in results]
    wrong = differences(found, flat, names, **options)
    assert not wrong, "\n".join(wrong)
