"""The translator's types of the arguments that a signature declares."""

from numba import types

from labkit.simulator.errors import KernelError
from labkit.simulator.reading.source import argument_names, read_source
from labkit.simulator.values import Array


def signature_types(function, signature) -> tuple:
    """The translator's types of the arguments that a signature declares."""
    source = read_source(function)
    names = argument_names(source)
    if len(names) != len(signature):
        raise KernelError(
            f"the signature has {len(signature)} arguments, and the function takes {len(names)} ({', '.join(names)}); "
            "make them the same",
            source.tree.lineno,
        )
    return tuple(
        Array(kind.dtype, kind.ndim, "global", name) if isinstance(kind, types.Array) else kind
        for name, kind in zip(names, signature)
    )
