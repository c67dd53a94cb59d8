"""torch's own functions as contenders of a bench."""

from collections.abc import Callable


def on_stream(call: Callable[[], object]) -> Callable[[object], None]:
    """A function of a numba stream that makes a call of torch's on it, as `labkit.timing` wants its launches."""
    import torch

    def launch(stream):
        with torch.cuda.stream(torch.cuda.ExternalStream(int(stream))):
            call()

    return launch
