"""What users call: attention of arrays as they lie, and as plans."""
