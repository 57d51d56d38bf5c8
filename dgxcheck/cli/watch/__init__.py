"""Where the events of ``dgxcheck watch`` go."""
