"""The framework of checks: registration, findings, gaps, growth of counters and the run itself."""
