"""What follows from the natures of facts alone, for every kind of device."""
