"""Outputs of other tools, read into facts. Pure: lines in, facts out; nothing is opened, started or asked."""
