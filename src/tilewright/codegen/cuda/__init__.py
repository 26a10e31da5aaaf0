"""CUDA C++ source of kernels."""

from tilewright.codegen.cuda.kernel import build_cuda, generate_cuda
