"""Probes of the host: CPUs, memory, NUMA nodes, modules, storage and network."""
