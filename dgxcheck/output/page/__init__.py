"""A report as one file: what it says as blocks, and the formats that write them."""
