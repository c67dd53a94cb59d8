"""What the simulator says of a launch: races and other errors, advice, and the cures."""
