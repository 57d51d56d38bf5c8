"""Progress and durations on the terminal."""
