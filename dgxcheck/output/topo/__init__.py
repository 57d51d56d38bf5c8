"""The output formats of the topo command."""
