"""What formats have in common: the base class, and a class for each way to encode numbers."""
