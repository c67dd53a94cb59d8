"""Measurements, a file per operation: `main(record, out)` stores them in the package (`record`) or in folder `out`."""
