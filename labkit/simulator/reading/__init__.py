"""A kernel's source: its text and syntax tree, its captured values, and where it can wait."""
