"""torch.compile leaves labkit's calls alone: it runs them as they are, between parts of a function that it compiles.

A call plans and compiles kernels, which torch would trace line by line. torch may be imported before labkit or after,
so it is told when it first comes by: it runs functions that are marked as constant while it traces. Layers of
`labkit.nn` are traced, down to their operators.
"""

import sys
from pkgutil import iter_modules

import labkit

TRACED = "nn"


def leave_alone() -> None:
    """Lets torch.compile, where it is loaded, trace no function of labkit but layers."""
    rules = sys.modules.get("torch._dynamo.trace_rules")
    if rules is not None and not _told:
        _told.update(found.name for found in iter_modules(labkit.__path__) if found.name != TRACED)
        for name in _told:
            rules.add(f"labkit.{name}")


leave_alone._dynamo_marked_constant = True  # as torch._dynamo.assume_constant_result does it
_told = set()


def undisturbed(function):
    """A function that runs, with all that it calls, as if torch.compile were not there."""
    dynamo = sys.modules.get("torch._dynamo")
    return function if dynamo is None else dynamo.disable(function, recursive=True)
