"""Parts of the translator that `labkit.simulator.translate` runs."""
