"""What the simulator raises; every message is one sentence that says what is wrong and what to do."""


class SimulatorError(Exception):
    """Anything the simulator refuses."""

    def _render_traceback_(self):
        """What a notebook shows: the sentence alone, without the simulator's own frames."""
        return [f"{type(self).__name__}: {self}"]


class LaunchError(SimulatorError):
    """A launch that a GPU would refuse too: grid, block, shared memory or arguments."""


class KernelError(SimulatorError):
    """Kernel code that cannot run; `line` is the line of the file or notebook cell."""

    def __init__(self, message: str, line: int):
        super().__init__(f"line {line}: {message}")
        self.line = line
        self.reason = message


class NotFixed(KernelError):
    """A shape that must be known when the kernel is compiled is a variable."""
