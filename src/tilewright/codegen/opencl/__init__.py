"""OpenCL C source of kernels."""

from tilewright.codegen.opencl.kernel import build_opencl, generate_opencl
