"""A translated kernel: its code, and what a launch must know about it."""

import math
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

import numpy as np

from labkit.simulator.arrays import Array
from labkit.simulator.family import Family, LocalState, SharedState
from labkit.simulator.host import DeviceArray
from labkit.trace import Finding, Site


@dataclass
class Allocation:
    """A call in a kernel that makes an array, such as `cuda.shared.array`."""

    name: str
    space: str  # "shared" or "local"
    shape: tuple[int, ...] | int  # 0 where it takes all dynamic shared memory
    dtype: np.dtype
    line: int
    alignment: int  # a divisor of its address, in bytes
    first_byte: int | None = None  # in dynamic shared memory; None for an array with memory of its own

    @property
    def dynamic(self) -> bool:
        """True if it is in dynamic shared memory."""
        return self.shape == 0 or self.first_byte is not None


@dataclass(frozen=True)
class Access:
    """An access that an explored kernel yields before making it: its site, or its site by array name.

    `commutes` is the atomic operation, if its order among others of that kind makes no difference.
    """

    site: int | dict[str, int]
    commutes: str = ""


@dataclass
class Program:
    """A translated kernel and all that its device functions share with it."""

    filename: str
    watch: bool = False  # its code reports every variable after every statement
    pauses: bool = False  # its code yields before every access
    sites: dict[Site, int] = field(default_factory=dict)  # its accesses, numbered
    allocations: dict[tuple, Allocation] = field(default_factory=dict)
    advice: dict[tuple, Finding] = field(default_factory=dict)
    frozen: dict[tuple[FunctionType, str], Any] = field(
        default_factory=dict
    )  # the globals' values, by function and name
    constants: dict[int, Array] = field(default_factory=dict)  # arrays in constant memory, by the original's id
    captured: dict[str, DeviceArray] = field(default_factory=dict)  # device arrays of the kernel's module
    stored: set[str] = field(default_factory=set)  # names of the arrays that it writes to
    past_l1: set[int] = field(default_factory=set)  # sites of loads that bypass L1
    pieces: dict[str, set[int]] = field(default_factory=dict)  # sizes of what each array is taken apart into, in bytes
    float64_lines: set[int] = field(default_factory=set)  # those with an operation in float64
    wait_columns: dict[int, int] = field(default_factory=dict)  # by line
    guesses: set[int] = field(default_factory=set)  # sites of reads that a compare-and-swap checks
    after_atomics: set[int] = field(default_factory=set)  # sites of accesses that depend on an atomic's result
    locks: set[tuple[str, int]] = field(default_factory=set)  # atomics that may take a lock: array and line
    blocking: bool = False  # it can wait for other warps, so that its code is a generator
    waiting: dict[FunctionType, bool] = field(default_factory=dict)  # whether a device function can wait
    meeting: dict[FunctionType, bool] = field(default_factory=dict)  # whether it holds a grid barrier
    atomic: dict[FunctionType, bool] = field(default_factory=dict)  # whether it holds an atomic
    spins: bool = False  # a loop waits for another thread
    cooperative: bool = False  # it has a grid barrier
    prints: bool = False
    raising: set = field(default_factory=set)  # device functions, translated, that may end threads by an exception
    rebound: dict[str, int] = field(default_factory=dict)  # arguments that it assigns to, each with the line
    acts_on_atomics: bool = False  # it uses a value that an atomic returned
    families: dict[Family, Any] = field(default_factory=dict)  # those it uses, each with its notes
    variables: dict[str, set] = field(default_factory=dict)  # their types
    namespace: dict[str, Any] = field(default_factory=dict)  # globals of the generated code
    compiled: dict[tuple, tuple] = field(default_factory=dict)  # device functions, translated
    kernel: Any = None  # the generated function
    text: str = ""  # its source
    visits: int = 0  # nodes of the syntax tree walked
    characters: int = 0  # of the source

    @property
    def static_shared_bytes(self) -> int:
        """Shared memory of a block without what the launch adds."""
        shared = [a for a in self.allocations.values() if a.space == "shared" and not a.dynamic]
        return sum(-(-math.prod(a.shape) * a.dtype.itemsize // 16) * 16 for a in shared)

    def use(self, family: Family) -> Any:
        """Return a family's notes on the program, which uses the family from now on."""
        if family not in self.families:
            self.families[family] = family.notes()
        return self.families[family]

    @property
    def keeps_clocks(self) -> bool:
        """True if warps synchronise by other means than barriers of the block."""
        return self.acts_on_atomics or any(family.keeps_clocks for family in self.families)

    @property
    def has_warpgroup_clocks(self) -> bool:
        """True if the tensor cores of a warpgroup keep their own clock."""
        return any(family.has_warpgroup_clocks for family in self.families)

    @property
    def keeps_events(self) -> bool:
        """True if its warps do different things at a time."""
        return any(family.keeps_events for family in self.families)

    @property
    def is_asynchronous(self) -> bool:
        """True if operations run while their threads continue."""
        return any(family.is_asynchronous for family in self.families)

    def is_copy(self, site: int) -> bool:
        """Return whether an asynchronous copy writes at this site, done once its thread has waited."""
        return any(family.notes_copies and site in notes for family, notes in self.families.items())

    def cure_race(self, race) -> str:
        """Return its families' fix of a race, a sentence; "" if none of them has one."""
        cures = (family.cure_race(race, notes) for family, notes in self.families.items() if family.cure_race)
        return next(filter(None, cures), "")

    def cure_unwritten(self, launch, site: Site) -> str:
        """Return its families' fix of a read of an element that nothing has written; "" if none of them has one."""
        with_cure = ((family.cure_unwritten, notes) for family, notes in self.families.items())
        return next(filter(None, (cure(launch, site, notes) for cure, notes in with_cure if cure)), "")

    def shared_states(self, units: int) -> dict[type, SharedState]:
        """Return its families' states of a shared array with this many units."""
        return {kind: kind(units) for family in self.families for kind in family.shared_states}

    def local_states(self, shape: tuple[int, int]) -> dict[type, LocalState]:
        """Return its families' states of a thread's own array."""
        return {kind: kind(shape) for family in self.families for kind in family.local_states}

    @property
    def waits_for_all(self) -> bool:
        """True if blocks may wait for one another, so that all must run together."""
        return self.spins or self.cooperative
