"""The base class of formats, and a class for each way to encode numbers."""
