"""What other tools found: diagnostics, and logs of libraries and services."""
