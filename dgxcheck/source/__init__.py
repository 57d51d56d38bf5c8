"""The machine at one time: live, a directory, or a recording."""
