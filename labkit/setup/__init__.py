"""What must be installed: makes the environment, and diagnoses a broken one."""
