"""GPUs: published figures, what a GPU holds at once, and the device that runs kernels here."""
