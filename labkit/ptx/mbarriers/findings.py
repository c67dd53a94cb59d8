"""Findings of barriers in shared memory."""

import numpy as np

from labkit.ptx.finding import log_error
from labkit.ptx.mbarriers.wait_cures import cure_of_count
from labkit.simulator.errors import KernelError


def check_use(program, barrier_sites):
    """Raise KernelError where a kernel reads or writes a barrier of shared memory as if it were a number."""
    barriers = {site.array for site, number in program.sites.items() if number in barrier_sites}
    for site, number in program.sites.items():
        if site.array in barriers and number not in barrier_sites:
            raise KernelError(
                f"`{site.array}` holds barriers, and what such an element holds is the hardware's: use it by "
                "`ptx.mbarrier_init`, `ptx.mbarrier_arrive`, `ptx.mbarrier_wait` and their like alone",
                site.line,
            )


def note_not_set_up(w, site, barriers, numbers, lanes):
    """Note uses of barriers that are not initialised."""
    cure = (
        "Let one thread call `ptx.mbarrier_init(barriers, i, count)` and `ptx.mbarrier_init_fence()`, and all wait at "
        "`cuda.syncthreads()` before anybody uses it."
    )
    _note(w, site, barriers, numbers, lanes, "uses", "which nothing has set up, so that it holds anything", cure)


def note_set_up_again(w, site, barriers, numbers, lanes):
    """Note barriers that are initialised while in use."""
    cure = "Set each barrier up once, by one thread: `if cuda.threadIdx.x == 0:`."
    _note(w, site, barriers, numbers, lanes, "sets up", "which is in use already, so that its phases are lost", cure)


def note_no_arrivals(w, site, barriers, numbers, lanes):
    """Note barriers initialised for phases without arrivals."""
    cure = "Count the threads that call `mbarrier_arrive` or `mbarrier_expect` in a phase."
    _note(w, site, barriers, numbers, lanes, "sets up", "for less than one arrival, so that no phase of it ends", cure)


def note_not_fenced(w, site, barriers, numbers, lanes):
    """Note barriers of copies whose initialisation was not fenced."""
    cure = "Call `ptx.mbarrier_init_fence()` after `ptx.mbarrier_init`, in the same thread."
    _note(w, site, barriers, numbers, lanes, "has bytes counted at", "of which TMA may not know yet", cure)


def note_too_many_arrivals(w, site, barriers, numbers, lanes):
    """Note arrivals in excess of a phase's count."""
    count = int(barriers.count[numbers[int(np.argmax(lanes))]])
    what = f"whose phase takes {count} arrival{'s' * (count != 1)} and has them all"
    cure = (
        "Let as many threads arrive in a phase as `ptx.mbarrier_init` was told, and wait for the end of a phase "
        "before arriving for the next one."
    )
    _note(w, site, barriers, numbers, lanes, "arrives at", what, cure)


def note_wrong_parity(w, site, barriers, numbers, lanes, parity):
    """Note waits for a parity other than 0 or 1."""
    cure = "Keep the lowest bit: `phase & 1`."
    what = f"for parity {int(parity[int(np.argmax(lanes))])}, and a parity is 0 or 1"
    _note(w, site, barriers, numbers, lanes, "waits at", what, cure)


def note_unfinished_copy(launch, barriers, number, copy_site):
    """Note a copy that had not completed on the barrier of this number when its block ended."""
    site = launch.sites[copy_site]
    what = (
        "nobody waits for the copy that this line begins, and the block's shared memory is gone while it is in flight: "
        "it can spoil that of the next block"
    )
    cure = cure_of_count(launch.source.tree)
    cure = cure or f"Wait for it with `ptx.mbarrier_wait` on {_name(barriers, number)} before the block ends."
    key = ("in-flight", site.line, site.column, "end")
    log_error(launch.log, key, site, "in-flight", what, cure, array=site.array)


def describe_missing(barriers, number, parity) -> str:
    """Return the arrivals and bytes that an incomplete phase has had, as the middle of a sentence."""
    count, pending = int(barriers.count[number]), int(barriers.pending[number])
    expected, arrived_bytes = int(barriers.expected_bytes[number]), int(barriers.arrived_bytes[number])
    arrived_bytes += sum(copy.box_bytes for copy, _ in barriers.copies.get(number, ()))
    arrived = f"{count - pending} of {count} arrival{'s' * (count != 1)}"
    bytes_ = f" and {arrived_bytes:,} of {expected:,} expected bytes of copies" if expected or arrived_bytes else ""
    phase = int(barriers.phase[number])
    ended = f"after {phase} complete phase{'s' * (phase != 1)}"
    return f" for parity {parity} of {_name(barriers, number)}, which has had {arrived}{bytes_} {ended}"


def _name(barriers, number) -> str:
    index = barriers.array.position(int(number) % barriers.per_block)
    return f"{barriers.array.name}[{', '.join(map(str, index))}]"


def _note(w, site_number, barriers, numbers, lanes, does, what, cure):
    log = w.chunk.launch.log
    site = log.launch.sites[site_number]
    lane = int(np.argmax(lanes))
    who = log.lane(w, lane)
    key, message = ("mbarrier", site.line, site.column, does, what), f"{does} {_name(barriers, numbers[lane])}, {what}"
    threads = {"array": barriers.array.name, "threads": (who,)}
    log_error(log, key, site, "mbarrier", f"{log.name(who)} {message}", cure, w.count(lanes), **threads)
