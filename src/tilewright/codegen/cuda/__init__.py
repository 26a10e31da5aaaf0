"""CUDA C++ source of kernels."""

from tilewright.codegen.c.device import device_function_names
from tilewright.codegen.cuda.kernel import generate_cuda
from tilewright.codegen.generator import register
from tilewright.codegen.source import SourceGenerator

register(SourceGenerator("cuda", "cu", generate_cuda, device_function_names, language="CUDA"))
