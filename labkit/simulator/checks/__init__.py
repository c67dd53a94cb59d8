"""Checks of a launch: races and other errors, advice, and suggested fixes."""
