"""The worker that reads files backed by a driver, and its supervisor."""
