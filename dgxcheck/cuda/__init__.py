"""CUDA by the driver's own library, in a child process: the kernels, the binding and the measurements."""
