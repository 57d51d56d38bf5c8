"""The files that ship for monitors and schedulers, and where each belongs on a host."""
