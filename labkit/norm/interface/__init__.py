"""What users call: normalisation of arrays as they lie, and as plans."""
