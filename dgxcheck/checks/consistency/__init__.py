"""What cannot be true together: readings of one device against each other, totals, identities, counters over time."""
