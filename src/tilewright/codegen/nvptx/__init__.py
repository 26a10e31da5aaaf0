"""The CUDA backend: PTX for NVIDIA GPUs by LLVM. The driver compiles it; no toolkit is needed."""

from tilewright.codegen.generator import register
from tilewright.codegen.nvptx.build import PTXGenerator

register(PTXGenerator())
