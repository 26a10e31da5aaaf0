"""Modules of other code generators: the JSON form of a part of a model, and what runs it."""

from tilewright.runtime.external import cublas, cublaslt, cudnn, cudnn_convolution, mkl
from tilewright.runtime.external.const_loader import ConstLoader
from tilewright.runtime.external.json_graph import JSONGraph, JSONNode
from tilewright.runtime.external.json_runtime import JSONRuntime, register_json_runtime
from tilewright.runtime.external.onednn import OneDNNRuntime
from tilewright.runtime.external.onnx_runtime import ONNXRuntime
from tilewright.runtime.external.openblas import OpenBLASRuntime

__all__ = [
    "ConstLoader",
    "JSONGraph",
    "JSONNode",
    "JSONRuntime",
    "ONNXRuntime",
    "OneDNNRuntime",
    "OpenBLASRuntime",
    "register_json_runtime",
]
