"""What changed between two snapshots of a machine: pure functions, one subject per file."""
