"""The parts of the translator: what `labkit.simulator.translate` runs."""
