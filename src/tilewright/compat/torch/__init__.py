"""TVM's ``relay.frontend.pytorch``: its converter, with a method for each operator, over this version's own."""

from tilewright.compat.torch.converter import PyTorchOpConverter
from tilewright.compat.torch.graph import convert_params, get_attr_chains, get_use_chains

__all__ = ["PyTorchOpConverter", "convert_params", "get_attr_chains", "get_use_chains"]
