"""The probe of the kernel log and the parsers of its lines."""
