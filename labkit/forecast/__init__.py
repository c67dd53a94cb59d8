"""Forecasts of a kernel's time: roofline, time model, timeline, and the machine code that these read."""
