"""What the watch tells: lines, a table, metrics, entries of the journal."""
