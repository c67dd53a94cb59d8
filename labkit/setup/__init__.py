"""Installation: creation of the environment, and its diagnosis."""
