"""OpenCL C source of kernels."""

from tilewright.codegen.c.device import device_function_names
from tilewright.codegen.generator import register
from tilewright.codegen.opencl.kernel import generate_opencl
from tilewright.codegen.source import SourceGenerator

register(SourceGenerator("opencl", "cl", generate_opencl, device_function_names, language="OpenCL"))
