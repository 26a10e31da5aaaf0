"""Parameters of a model as bytes."""

from tilewright.runtime.params import load_param_dict, save_param_dict

__all__ = ["load_param_dict", "save_param_dict"]
