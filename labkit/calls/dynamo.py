"""Keeps torch.compile from tracing labkit's calls: it runs them uncompiled, between compiled parts of a function.

A call plans and compiles kernels, which torch would trace line by line. torch may be imported before or after labkit,
so `exclude_from_compile` registers the rule at the first traced call: torch runs functions that are marked as constant
while it traces. torch does trace the layers of `labkit.nn`, down to their operators.
"""

import sys
from pkgutil import iter_modules

import labkit

TRACED = "nn"  # the subpackage that torch traces


def exclude_from_compile() -> None:
    """Let torch.compile, if it is loaded, trace no function of labkit except layers."""
    rules = sys.modules.get("torch._dynamo.trace_rules")
    if rules is not None and not _excluded:
        _excluded.update(module.name for module in iter_modules(labkit.__path__) if module.name != TRACED)
        for name in _excluded:
            rules.add(f"labkit.{name}")


exclude_from_compile._dynamo_marked_constant = True  # like torch._dynamo.assume_constant_result
_excluded = set()


def without_tracing(function):
    """Return a function that torch.compile does not trace, with all functions that it calls."""
    dynamo = sys.modules.get("torch._dynamo")
    return function if dynamo is None else dynamo.disable(function, recursive=True)
