"""``lspci``: functions, tree and configuration space, as the files of sysfs that hold the same."""
