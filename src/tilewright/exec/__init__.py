"""Programs of TVM's that are run with ``python -m``."""
