"""Tables of the scalar functions that a kernel may call: how each is typed, and what lanes compute."""
