"""What is built beside wheel and sdist, for hosts without pip: one executable file, and a Debian package."""
