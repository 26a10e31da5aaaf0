"""Metal source of kernels."""

from tilewright.codegen.metal.kernel import build_metal, generate_metal
