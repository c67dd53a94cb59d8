"""What goes wrong at barriers in shared memory, in a learner's words."""

import numpy as np

from labkit.simulator.errors import KernelError


def check_use(program, barrier_sites):
    """Raises KernelError where a kernel reads or writes a barrier of shared memory as if it were a number."""
    barriers = {site.array for site, number in program.sites.items() if number in barrier_sites}
    for site, number in program.sites.items():
        if site.array in barriers and number not in barrier_sites:
            raise KernelError(
                f"`{site.array}` holds barriers, and what such an element holds is the hardware's: use it by "
                "`ptx.mbarrier_init`, `ptx.mbarrier_arrive`, `ptx.mbarrier_wait` and their like alone",
                site.line,
            )


def not_set_up(w, site, barriers, places, lanes):
    cure = (
        "Let one thread call `ptx.mbarrier_init(barriers, i, count)` and `ptx.mbarrier_init_fence()`, and all wait at "
        "`cuda.syncthreads()` before anybody uses it."
    )
    _note(w, site, barriers, places, lanes, "uses", "which nothing has set up, so that it holds anything", cure)


def set_up_again(w, site, barriers, places, lanes):
    cure = "Set each barrier up once, by one thread: `if cuda.threadIdx.x == 0:`."
    _note(w, site, barriers, places, lanes, "sets up", "which is in use already, so that its phases are lost", cure)


def no_arrivals(w, site, barriers, places, lanes):
    cure = "Count the threads that call `mbarrier_arrive` or `mbarrier_expect` in a phase."
    _note(w, site, barriers, places, lanes, "sets up", "for less than one arrival, so that no phase of it ends", cure)


def not_fenced(w, site, barriers, places, lanes):
    cure = "Call `ptx.mbarrier_init_fence()` after `ptx.mbarrier_init`, in the same thread."
    _note(w, site, barriers, places, lanes, "has bytes counted at", "of which the copy engine may not know yet", cure)


def too_many(w, site, barriers, places, lanes):
    count = int(barriers.count[places[int(np.argmax(lanes))]])
    what = f"whose phase takes {count} arrival{'s' * (count != 1)} and has them all"
    cure = (
        "Let as many threads arrive in a phase as `ptx.mbarrier_init` was told, and wait for the end of a phase "
        "before arriving for the next one."
    )
    _note(w, site, barriers, places, lanes, "arrives at", what, cure)


def no_parity(w, site, barriers, places, lanes, parity):
    cure = "Keep the lowest bit: `phase & 1`."
    what = f"for parity {int(parity[int(np.argmax(lanes))])}, and a parity is 0 or 1"
    _note(w, site, barriers, places, lanes, "waits at", what, cure)


def never_waited_for(launch, barriers, place, copy_site):
    """A copy that counts on the barrier at this place had not landed when its block ended."""
    log, site = launch.log, launch.sites[copy_site]
    key = ("in-flight", site.line, site.column, "end")
    if log.known(key):
        return
    cure = f"Wait for it with `ptx.mbarrier_wait` on {_name(barriers, place)} before the block ends."
    log.add(
        key,
        kind="in-flight",
        message=(
            f"Line {site.line}: nobody waits for the copy that this line begins, and the block's shared memory is "
            f"gone while it is under way: it can spoil that of the next block. {cure}"
        ),
        remedy=cure,
        site=site,
        array=site.array,
    )


def what_is_missing(barriers, place, parity) -> str:
    """What the phase lacks for which somebody waits in vain, as the middle of a sentence."""
    count, pending = int(barriers.count[place]), int(barriers.pending[place])
    expected, came = int(barriers.expected[place]), int(barriers.came[place])
    came += sum(copy.box_bytes for copy, _ in barriers.copies.get(place, ()))
    arrived = f"{count - pending} of {count} arrival{'s' * (count != 1)}"
    bytes_ = f" and {came:,} of {expected:,} expected bytes of copies" if expected or came else ""
    phase = int(barriers.phase[place])
    ended = f"after {phase} complete phase{'s' * (phase != 1)}"
    return f" for parity {parity} of {_name(barriers, place)}, which has had {arrived}{bytes_} {ended}"


def _name(barriers, place) -> str:
    index = barriers.array.position(int(place) % barriers.each)
    return f"{barriers.array.name}[{', '.join(map(str, index))}]"


def _note(w, site_number, barriers, places, lanes, does, what, cure):
    log = w.chunk.launch.log
    site = log.launch.sites[site_number]
    key = ("mbarrier", site.line, site.column, does, what)
    if log.known(key, w.count(lanes)):
        return
    lane = int(np.argmax(lanes))
    who = log.lane(w, lane)
    log.add(
        key,
        w.count(lanes),
        kind="mbarrier",
        message=f"Line {site.line}: {log.name(who)} {does} {_name(barriers, places[lane])}, {what}. {cure}",
        remedy=cure,
        site=site,
        array=barriers.array.name,
        threads=(who,),
    )
