"""Measurements: one file an operation, each with `main(record, out)`."""
