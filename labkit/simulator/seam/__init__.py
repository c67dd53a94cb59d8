"""All that the simulator takes from numba: its types, its typing rules, its compiler, and the lock of that.

Where numba is not installed, tables of its answers stand for its rules, and Python runs what it would compile: slowly,
and with the same results.
"""

from typing import Any, Protocol


class Rules(Protocol):
    """The typing rules of numba that the translator asks for. Types are those of `types`."""

    def resolve(self, function, argument_types: tuple) -> tuple | None:
        """Return (result type, argument types after conversion) of a call, or None if numba has none."""

    def resolve_overload(self, cases: tuple, argument_types: tuple) -> tuple | None:
        """Return the same for a function with these signatures, made by `signature`: numba's choice among them."""

    def unify(self, *scalar_types):
        """Return the type of a variable that is assigned values of these types, or None."""

    def as_dtype(self, scalar_type):
        """Return NumPy's dtype of a type."""

    def from_dtype(self, dtype):
        """Return the type of a NumPy dtype; raise `NumbaError` if there is none."""

    def parse_signature(self, declared) -> tuple:
        """Return the argument types of a signature as `cuda.jit` takes it, such as "void(float32[:], int32)"."""


try:
    from labkit.simulator.seam import by_numba as chosen
except ModuleNotFoundError as error:
    if error.name != "numba":
        raise
    from labkit.simulator.seam import by_table as chosen

rules: Rules = chosen
is_installed = chosen.__name__.endswith("by_numba")
NumbaError, global_compiler_lock = chosen.NumbaError, chosen.global_compiler_lock
njit, inner_njit = chosen.njit, chosen.inner_njit
bfloat16, literal_unroll, signature, types = chosen.bfloat16, chosen.literal_unroll, chosen.signature, chosen.types
overload, typeof = chosen.overload, chosen.typeof
event: Any = chosen.event
package = chosen.package  # numba itself, or a module with what programs for kernels import from it
