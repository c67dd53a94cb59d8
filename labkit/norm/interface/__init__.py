"""The public calls of normalisation, and their operations."""
