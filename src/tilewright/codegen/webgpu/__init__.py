"""WebGPU source of kernels."""

from tilewright.codegen.c.device import device_function_names
from tilewright.codegen.generator import register
from tilewright.codegen.source import SourceGenerator
from tilewright.codegen.webgpu.kernel import generate_webgpu

register(SourceGenerator("webgpu", "wgsl", generate_webgpu, device_function_names, language="WGSL"))
