"""Models whose runs are one CUDA graph."""
