"""Barriers in shared memory over time: the arrivals and bytes that a phase waits for, and its end."""

from collections.abc import Iterator
from dataclasses import dataclass

from matplotlib.patches import Rectangle

from labkit.trace import Event, Trace
from labkit.views import stills
from labkit.views.base import COLOURS, View, heading, table
from labkit.views.wording import block_name, check_trace, join, recorded_block

MAX_BARRIERS, MAX_STEPS = 8, 120


def mbarriers(trace: Trace, block=None) -> View:
    """Step through the arrivals, expected bytes, copies and waits at the mbarriers of a block.

    Time is the order in which the simulator ran the block. A copy arrives as late as a wait allows.

    Parameters
    ----------
    trace
        A run that recorded the block; it may have ended in a deadlock.
    block
        Index (x, y, z) of a recorded block; the first recorded one if left out.

    Raises
    ------
    ValueError
        The block initialises no mbarrier, or more than the picture has room for.
    """
    check_trace("mbarriers", trace)
    block, _ = recorded_block(trace, block)
    events = [event for event in trace.events if event.block == block]
    barriers = {event.at: _Barrier(event.amount) for event in events if event.kind == "init"}
    names = sorted(barriers, key=lambda at: (at.partition("[")[2], at.partition("[")[0] != "full"))
    if not 0 < len(names) <= MAX_BARRIERS:
        raise ValueError(
            f"Block {block_name(block)} of `{trace.kernel}` initialises {len(names)} mbarriers: mbarriers shows 1 to "
            f"{MAX_BARRIERS} of them."
        )
    steps = list(_steps(events, barriers, names))[:MAX_STEPS]
    rows = [
        [n + 1, at, *(text for name in names for text in state_text(states[name]))]
        for n, (_, at, states) in enumerate(steps)
    ]
    columns = [f"{name}: {what}" for name in names for what in ("phase", "missing")]
    data = {
        "say": [say for say, *_ in steps],
        "names": names,
        "at": [names.index(at) for _, at, _ in steps],
        "states": [[list(states[name]) for name in names] for *_, states in steps],
        "table": table(["step", "at", *columns], rows, by_step=True),
    }
    return View("mbarriers", f"Barriers in shared memory: {join([f'`{name}`' for name in names])}", data, draw_still)


def state_text(state) -> tuple[str, str]:
    """Return a state's phase with its parity, and what the phase misses, as text."""
    phase, _, pending, expected, arrived, _ = state
    return f"{phase} (parity {phase % 2})", f"{count_arrivals(pending)}, {expected - arrived:,} bytes"


def count_arrivals(count) -> str:
    return f"{count} arrival{'s'[: count != 1]}"


@dataclass
class _Barrier:
    count: int
    phase: int = 0
    pending: int = -1
    expected: int = 0
    arrived: int = 0

    def __post_init__(self):
        self.pending = self.count
        self.in_flight: list[Event] = []
        self.waiting: dict[int, int] = {}  # phases for which warps wait

    @property
    def state(self) -> tuple:
        return self.phase, self.count, self.pending, self.expected, self.arrived, sorted(self.waiting)

    def complete(self) -> str:
        """End the phase if it misses nothing; return a sentence about it."""
        missing = [count_arrivals(self.pending)] * (self.pending > 0)
        missing += [f"{self.expected - self.arrived:,} bytes"] * (self.expected > self.arrived)
        if missing:
            return f"Phase {self.phase} misses {join(missing)}."
        ended, self.phase = self.phase, self.phase + 1
        self.pending, self.expected, self.arrived = self.count, 0, 0
        released = sorted(warp for warp, phase in self.waiting.items() if phase == ended)
        for warp in released:
            del self.waiting[warp]
        on = f" {_warps(released)} go{'es' * (len(released) == 1)} on." if released else ""
        return f"**Phase {ended} is complete**: the barrier flips to phase {self.phase}, parity {self.phase % 2}.{on}"


def _warps(numbers) -> str:
    return f"Warp{'s'[: len(numbers) != 1]} {join(list(map(str, numbers)))}"


def _steps(events: list[Event], barriers, names) -> Iterator[tuple]:
    """Yield a sentence, the barrier that it is about, and the states of all barriers, for each step."""

    def step(say, at):
        return say, at, {name: barriers[name].state for name in names}

    def land(at):
        barrier = barriers[at]
        copies, barrier.in_flight = barrier.in_flight, []
        landed = sum(copy.amount for copy in copies)
        barrier.arrived += landed
        arrays = join([f"`{array}`" for array in dict.fromkeys(copy.array for copy in copies)])
        return step(
            f"TMA has written {landed:,} bytes to {arrays}, and counts them at `{at}`. {barrier.complete()}", at
        )

    for event in events:
        for at in names:  # a warp that goes on has what it waited for
            if event.warp in barriers[at].waiting and barriers[at].in_flight:
                yield land(at)
        barrier, where = barriers.get(event.at), f"Line {event.line}: **warp {event.warp}"
        if event.kind == "arrive":
            barrier.pending -= event.count
            barrier.expected += event.amount
            does = f"arrives at `{event.at}`**" + f" and expects {event.amount:,} bytes" * (event.amount > 0)
            yield step(f"{where} {does}. {barrier.complete()}", event.at)
        elif event.kind == "copy":
            barrier.in_flight.append(event)
            say = f"{where} issues a TMA load** of {event.amount:,} bytes to `{event.array}`, to be counted at "
            yield step(f"{say}`{event.at}`.", event.at)
        elif event.kind == "wait":
            phase = event.amount
            asks = f"{where} waits at `{event.at}` for parity {phase % 2}**"
            if barrier.phase > phase:
                first = ", the one before the first, counts as complete" if phase < 0 else " is complete"
                yield step(f"{asks}. Phase {phase}{first}: it goes on at once.", event.at)
            else:
                barrier.waiting[event.warp] = phase
                yield step(f"{asks}: phase {phase} is not complete.", event.at)
    for at in names:
        if barriers[at].in_flight:
            yield land(at)
    stuck = [(at, warp, phase) for at in names for warp, phase in barriers[at].waiting.items()]
    if stuck:
        waits = [f"warp {warp} waits for phase {phase} of `{at}`" for at, warp, phase in stuck]
        yield step(f"**Deadlock**: {join(waits)}, and nothing that still runs can complete it.", stuck[0][0])


def draw_still(figure, data, step):
    """Draw the barriers as rows, time to the right: phases in turn light and dark, waits as lines below."""
    names, states = data["names"], data["states"]
    figure.set_size_inches(9.5, 0.55 * len(names) + 1.1)
    axes = figure.add_subplot()
    for row in range(len(names)):
        for n, of_step in enumerate(states):
            phase, _, _, _, _, waiting = of_step[row]
            colour = COLOURS["C"] if phase % 2 else COLOURS["A"]
            axes.add_patch(Rectangle((n, row), 1, 0.6, facecolor=colour, alpha=1 if n <= step else 0.3))
            if not n or states[n - 1][row][0] != phase:
                stills.write(axes, n + 0.5, row + 0.3, phase, fontsize=7, color="white")
            if waiting:
                axes.plot([n, n + 1], [row + 0.75] * 2, color=COLOURS["hot"], linewidth=2)
    axes.add_patch(Rectangle((step, data["at"][step] - 0.05), 1, 0.9, fill=False, edgecolor=COLOURS["ink"]))
    axes.set(xlim=(-0.2, len(states) + 0.2), ylim=(len(names), -0.2), xlabel="steps", xticks=[])
    axes.set_yticks([row + 0.3 for row in range(len(names))], names, fontsize=8)
    stills.hide_marks(axes)
    axes.set_title(heading(data, step), fontsize=8, loc="left", color=COLOURS["fg"])
