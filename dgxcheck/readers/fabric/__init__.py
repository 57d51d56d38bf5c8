"""What tools print of a whole fabric: which port is joined with which, at what speed, and its error counters."""
