"""Metal source of kernels."""

from tilewright.codegen.c.device import device_function_names
from tilewright.codegen.generator import register
from tilewright.codegen.metal.kernel import generate_metal
from tilewright.codegen.source import SourceGenerator

register(SourceGenerator("metal", "metal", generate_metal, device_function_names, language="Metal"))
