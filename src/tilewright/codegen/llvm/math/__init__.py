"""Mathematical functions on vectors, written as LLVM IR and inlined: branch-free, in registers, with stated error."""
