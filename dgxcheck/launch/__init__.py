"""What launchers and schedulers need to know: which adapters, cores and memory belong to each GPU."""
