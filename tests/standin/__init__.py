"""Stand-ins in C for the libraries of a driver that the test machine does not have."""
