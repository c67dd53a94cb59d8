"""A translated kernel: its code, and what the launch must know about it."""

import math
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

import numpy as np

from labkit.simulator.arrays import Array
from labkit.simulator.host import DeviceArray
from labkit.trace import Finding, Site


@dataclass
class Allocation:
    """A call that makes an array: `shape` is 0 where it takes all dynamic shared memory.

    `alignment` is what its address is sure to be a multiple of, in bytes; `first_byte` is where in dynamic shared
    memory it begins, None for an array that has memory of its own.
    """

    name: str
    space: str
    shape: tuple[int, ...] | int
    dtype: np.dtype
    line: int
    alignment: int
    first_byte: int | None = None

    @property
    def dynamic(self) -> bool:
        """Does it lie in dynamic shared memory?"""
        return self.shape == 0 or self.first_byte is not None


@dataclass(frozen=True)
class Access:
    """What an explored kernel yields before an access: its site, or its site for each array that it may be about.

    commutes: the atomic operation, if its order among others of that kind makes no difference.
    """

    site: int | dict[str, int]
    commutes: str = ""


@dataclass
class Program:
    """A translated kernel and all that its device functions share with it."""

    filename: str
    watch: bool = False
    pauses: bool = False
    sites: dict[Site, int] = field(default_factory=dict)
    allocations: dict[tuple, Allocation] = field(default_factory=dict)
    advice: dict[tuple, Finding] = field(default_factory=dict)
    frozen: dict[tuple[FunctionType, str], Any] = field(default_factory=dict)
    constants: dict[int, Array] = field(default_factory=dict)
    captured: dict[str, DeviceArray] = field(default_factory=dict)
    stored: set[str] = field(default_factory=set)
    past_l1: set[int] = field(default_factory=set)
    wait_columns: dict[int, int] = field(default_factory=dict)  # by line
    guesses: set[int] = field(default_factory=set)
    answers: set[int] = field(default_factory=set)
    blocking: bool = False
    waiting: dict[FunctionType, bool] = field(default_factory=dict)
    meeting: dict[FunctionType, bool] = field(default_factory=dict)
    spins: bool = False
    cooperative: bool = False
    prints: bool = False
    rebound: dict[str, int] = field(default_factory=dict)
    acts_on_atomics: bool = False
    asynchronous: bool = False
    copies: set[int] = field(default_factory=set)  # the sites at which asynchronous copies of threads write
    has_async_proxy: bool = False
    has_warpgroups: bool = False
    has_mbarriers: bool = False
    knows_clusters: bool = False
    waits_for_launch: bool = False  # for the one before
    registers_asked: int = 0  # of a thread: the most that some warpgroup asks for
    named_barriers: bool = False
    barrier_sites: set[int] = field(default_factory=set)
    variables: dict[str, set] = field(default_factory=dict)
    namespace: dict[str, Any] = field(default_factory=dict)
    compiled: dict[tuple, tuple] = field(default_factory=dict)
    kernel: Any = None
    text: str = ""
    visits: int = 0
    characters: int = 0

    @property
    def static_shared_bytes(self) -> int:
        """Shared memory that a block needs before any that the launch adds."""
        shared = [a for a in self.allocations.values() if a.space == "shared" and not a.dynamic]
        return sum(-(-math.prod(a.shape) * a.dtype.itemsize // 16) * 16 for a in shared)

    @property
    def keeps_clocks(self) -> bool:
        """Whether warps learn of one another by other means than barriers of all."""
        meets = self.has_mbarriers or self.named_barriers or self.has_warpgroups or self.knows_clusters
        return self.acts_on_atomics or meets or self.waits_for_launch

    @property
    def waits_for_all(self) -> bool:
        """Whether blocks may wait for one another, so that all must run together."""
        return self.spins or self.cooperative
