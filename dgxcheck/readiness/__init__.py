"""Whether pairs of devices are ready for P2P and GPUDirect RDMA, from findings and measurements."""
