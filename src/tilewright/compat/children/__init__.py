"""The folder that ``python -m tilewright.as_tvm`` puts on the path of the processes which the program starts."""
