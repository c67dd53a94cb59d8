"""Errors of the simulator; every message is one sentence: the problem, and what to do."""


class SimulatorError(Exception):
    """Anything that the simulator refuses."""

    def _render_traceback_(self):
        """Return what a notebook shows: the sentence, without the simulator's frames."""
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
    """A variable where a shape must be known when the kernel is compiled."""
