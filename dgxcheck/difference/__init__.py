"""What has changed between two looks at a machine: pure functions, one subject per file."""
