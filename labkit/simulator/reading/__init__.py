"""A kernel's source: its text and syntax tree, what it captured from outside, and where it can wait."""
