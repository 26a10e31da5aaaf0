"""Functions beside ``from_pytorch`` that programs written for TVM import."""

import importlib

import torch
from tests.relay.frontend.torch.script_models import scripted

from tilewright.relay.frontend import from_pytorch
from tilewright.relay.frontend.torch.script.utilities import get_all_op_names, is_version_greater_than


def test_versions():
    """Compared number by number, whatever follows a plus sign."""
    assert is_version_greater_than("1.10.0")
    assert not is_version_greater_than("99.0")
    assert not is_version_greater_than(torch.__version__)


def branch(x):
    return torch.relu(x) if bool(x.sum() > 0) else torch.tanh(x)


def test_names_of_operators():
    """Those inside branches as well."""
    assert {"prim::If", "aten::relu", "aten::tanh"} <= get_all_op_names(scripted(branch).graph)


def test_modules_of_tvm():
    """Both modules are served under TVM's names."""
    assert importlib.import_module("tilewright.relay.frontend.pytorch").from_pytorch is from_pytorch
    utilities = importlib.import_module("tilewright.relay.frontend.pytorch_utils")
    assert utilities.is_version_greater_than is is_version_greater_than
