"""What tools of InfiniBand and RoCE print about HCAs and their ports, as the files of ``/sys/class/infiniband``."""
