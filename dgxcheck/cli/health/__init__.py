"""Options and informational output of the health command."""
