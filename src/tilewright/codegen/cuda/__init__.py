"""CUDA C++ source of kernels, which the module of PTX shows of the same loops."""

from tilewright.codegen.cuda.kernel import generate_cuda

__all__ = ["generate_cuda"]
