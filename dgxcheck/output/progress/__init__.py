"""What is shown on a terminal while the machine is measured or under load."""
