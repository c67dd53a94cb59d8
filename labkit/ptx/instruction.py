"""What a function of `labkit.ptx` is outside of a kernel: its documentation."""

from functools import wraps

from labkit.simulator.errors import LaunchError


def instruction(documented):
    """A function of the kernel language: it has a meaning inside a kernel alone."""

    @wraps(documented)
    def outside(*arguments):
        raise LaunchError(
            f"ptx.{documented.__name__} has a meaning only inside a kernel: use it in a function under @cuda.jit"
        )

    return outside
