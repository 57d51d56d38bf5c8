"""The output formats of the diff command."""
