"""The matrix engine as a backend: see docs/accelerator.md, which walks through these files."""

from matrix_engine.backend import MatrixEngine

__all__ = ["MatrixEngine"]
