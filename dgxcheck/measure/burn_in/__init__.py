"""The burn-in: plan, load, monitoring, stop rules and result."""
