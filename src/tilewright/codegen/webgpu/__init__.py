"""WebGPU source of kernels."""

from tilewright.codegen.webgpu.kernel import build_webgpu, generate_webgpu
