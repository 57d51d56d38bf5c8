"""The output formats of the health command."""
