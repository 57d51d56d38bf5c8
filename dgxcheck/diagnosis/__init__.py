"""From findings to causes: the fewest components that explain them, and what to do about each."""
