"""When the warps of an SM do what: the order of a simulated run, and how long each part of it takes by a stated model.

What a warp does one after the other, and what waits for what, are the run's own events (`labkit.trace.Event`). How long
things take is computed, for one SM that runs the recorded blocks one after the other:

- Tensor cores: each part of the SM does its share of the peak, on one product after the other. Where two of its warps
  have asked for some, it takes turns between them, or serves who asked first: which of these a GPU does is not
  published, so both can be computed.
- CUDA cores: what a warp computes between two events takes as long as the slower of its operations and its powers of
  two. Warps of a part take turns here as well.
- Copies: one after the other, at the SM's share of what L2 delivers, and each lands a latency of L2 later.

Nothing else takes time: indices, comparisons, conversions and maxima, barriers themselves, the launch of a block. No
clock of a GPU is read here.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from itertools import groupby

from labkit.machine import gpus
from labkit.machine.gpus import Gpu
from labkit.trace import TENSOR, WARP_LANES, Event, Trace

PRODUCTS_PER_CYCLE = 4096  # FLOP of an SM's tensor cores, of 16-bit formats (NVIDIA H100 whitepaper, 2022)
LIKE = "float16 tensor"
POWERS_PER_CYCLE = 16  # of an SM (CUDA C++ Programming Guide, "Throughput of Native Arithmetic Instructions")
ASK = 4  # cycles in which a warp asks for a product: an assumption, and little beside the product
TURN = 32  # cycles after which warps that compute take turns


@dataclass(frozen=True)
class Span:
    """What a warp, or a unit for it, did from `start` to `end`, in cycles.

    does: "product" of the tensor cores and "copy" or "store" of the copy engine, with the shared array `of` which it
    is; "compute" and how many powers of two that had; "wait" for `of`: "products", "stores", "turn" at a named barrier,
    "block", the array that a copy brings, or "" for a place that others are to leave.
    """

    warp: int
    does: str
    of: str
    start: float
    end: float
    powers: float = 0.0


@dataclass(frozen=True)
class Bubble:
    """Cycles in which tensor cores do nothing; `at_edge`: before the first product of a block, or after its last."""

    start: float
    end: float
    at_edge: bool


@dataclass(frozen=True, repr=False)
class Timeline:
    """Spans of blocks on one SM, in cycles from 0; `ends` says when each block has ended."""

    kernel: str
    gpu: Gpu
    ends: tuple[float, ...]
    spans: tuple[Span, ...]

    @property
    def cycles(self) -> float:
        return self.ends[-1]

    def products(self, part: int = 0) -> list[Span]:
        """What the tensor cores of a part of the SM do, one after the other. All parts do the same."""
        parts = self.gpu.sm_parts
        return sorted((s for s in self.spans if s.does == "product" and s.warp % parts == part), key=lambda s: s.start)

    def bubbles(self) -> list[Bubble]:
        """When the tensor cores do nothing."""
        found, begin, products = [], 0.0, self.products()
        for end in self.ends:
            mine = [span for span in products if begin <= span.start < end]
            starts, stops = [*(span.start for span in mine), end], [begin, *(span.end for span in mine)]
            edges = 0, len(mine)
            found += [
                Bubble(stop, start, number in edges)
                for number, (stop, start) in enumerate(zip(stops, starts, strict=True))
                if start > stop
            ]
            begin = end
        return found

    @property
    def rest(self) -> float:
        """The share of the time in which the tensor cores do nothing."""
        return sum(bubble.end - bubble.start for bubble in self.bubbles()) / self.cycles

    def __repr__(self):
        return f"<Timeline of {self.kernel}: {self.cycles:,.0f} cycles, tensor cores rest in {self.rest:.0%} of them>"


def timeline(trace: Trace, gpu: str | Gpu | None = None, in_turns: bool = True) -> Timeline:
    """The recorded blocks of a run on one SM, one after the other.

    Parameters
    ----------
    trace
        Of a kernel that multiplies by `wgmma`; blocks to show are recorded.
    gpu
        Whose figures count; those of the trace's GPU when left out.
    in_turns
        Whether tensor cores take turns between warps that have asked for products; if not, they serve who asked first.

    Raises
    ------
    ValueError
        The trace has no products of warpgroups, or the GPU has no tensor cores for them, or no known latencies.
    """
    figures = gpu if isinstance(gpu, Gpu) else gpus.gpu(gpu or trace.gpu)
    if not any(event.kind == "product" for event in trace.events):
        raise ValueError(
            f"`{trace.kernel}` asks for no products of warpgroups in the blocks that were recorded: take a kernel with "
            "`ptx.wgmma`, and record a block that multiplies"
        )
    dtype = next(name for name in trace.counters.flops_by_dtype if name.endswith(TENSOR))
    if figures.latencies is None or dtype not in figures.peak_tflops:
        raise ValueError(f"no latencies, or no {dtype} cores, are known of one {figures.name}: take an H100")
    spans, ends = [], [0.0]
    order = sorted(trace.events, key=lambda event: event.block[::-1])
    for _, events in groupby(order, key=lambda event: event.block):
        block = _Block(list(events), figures, dtype, in_turns, ends[-1])
        block.run()
        spans += block.spans
        ends.append(block.now)
    return Timeline(trace.kernel, figures, tuple(ends[1:]), tuple(spans))


# --- what a block is made of -----------------------------------------------------------------------


class _Signal:
    """Something that happens once, and for which warps wait."""

    def __init__(self):
        self.is_done = False
        self.waiting: list[Iterator] = []


class _Unit:
    """A unit that works on one thing at a time; who asks for several takes turns with others."""

    def __init__(self, block):
        self.block = block
        self.asked: dict[int, deque] = {}
        self.is_busy = False

    def ask(self, who, cycles, done):
        """Work of so many cycles; then `done(start, end)`."""
        self.asked.setdefault(who, deque()).append((cycles, done))
        if not self.is_busy:
            self._next()

    def _next(self):
        who = next((who for who, queue in self.asked.items() if queue), None)
        self.is_busy = who is not None
        if who is None:
            return
        cycles, done = self.asked[who].popleft()
        start = self.block.now

        def end():
            self.asked[who] = self.asked.pop(who)  # it is the others' turn first
            done(start, self.block.now)
            self._next()

        self.block.after(cycles, end)


@dataclass
class _Barrier:
    """An mbarrier: its phases, as `labkit.ptx.mbarriers` has them."""

    count: int
    pending: int = 0
    expected: int = 0
    came: int = 0
    phase: int = 0
    ends: dict[int, _Signal] = field(default_factory=dict)

    def end_of(self, phase) -> _Signal:
        return self.ends.setdefault(phase, _Signal())


class _Groups:
    """Asynchronous work of a warp by groups, of which each is done when the last of it is."""

    def __init__(self):
        self.last: _Signal | None = None
        self.closed: list[_Signal | None] = []

    def finished(self, pending) -> _Signal | None:
        """What happens when all but the newest groups are done."""
        return self.closed[-1 - pending] if len(self.closed) > pending else None


class _Block:
    """A block on an SM: its warps follow their events, and units work for them."""

    def __init__(self, events: list[Event], gpu: Gpu, dtype: str, in_turns: bool, begin: float):
        self.now = begin
        self.in_turns = in_turns
        self.queue: list[tuple] = []
        self.number = 0
        self.spans: list[Span] = []
        self.gpu = gpu
        share = gpu.peak_tflops[dtype] / gpu.peak_tflops[LIKE]
        self.product_rate = PRODUCTS_PER_CYCLE * share / gpu.sm_parts
        self.power_rate = POWERS_PER_CYCLE / gpu.sm_parts
        self.copy_rate = gpu.l2_bytes_per_clock / gpu.sms
        self.tensor, self.cuda = ([_Unit(self) for _ in range(gpu.sm_parts)] for _ in range(2))
        self.engine = _Unit(self)
        self.barriers: dict[str, _Barrier] = {}
        self.named: dict[str, tuple[int, list[_Signal]]] = {}
        self.at_block: list[_Signal] = []
        self.brings = {event.at: event.array for event in events if event.kind == "copy"}
        self.warps: dict[int, list[Event]] = {}
        for event in events:
            self.warps.setdefault(event.warp, []).append(event)
        self.in_block = sum(any(event.kind == "block" for event in mine) for mine in self.warps.values())
        self.left = len(self.warps)

    def run(self):
        for warp, events in self.warps.items():
            self.after(0, partial(self.resume, self.follow(warp, events)))
        while self.queue:
            self.now, _, action = heappop(self.queue)
            action()
        if self.left:
            raise ValueError("the events of this run do not fit together: some of its warps wait for ever")

    def after(self, cycles, action):
        self.number += 1
        heappush(self.queue, (self.now + cycles, self.number, action))

    def resume(self, running):
        """A warp goes on until it waits."""
        for signal in running:
            if not signal.is_done:
                signal.waiting.append(running)
                return
        self.left -= 1

    def fire(self, signal):
        signal.is_done = True
        for running in signal.waiting:
            self.resume(running)

    def follow(self, warp: int, events: list[Event]) -> Iterator[_Signal]:
        """Does what a warp did, and yields what it waits for."""
        products, stores = _Groups(), _Groups()
        operations = powers = 0.0
        for event in events:
            work = event.operations - operations, event.powers - powers
            operations, powers = event.operations, event.powers
            if max(work) > 0:
                yield from self.compute(warp, *work)
            match event.kind:
                case "init":
                    self.barriers[event.at] = _Barrier(event.amount, event.amount)
                case "arrive":
                    self.arrive(event.at, event.count, event.amount)
                case "copy":
                    self.copy(warp, event)
                case "product":
                    products.last = self.multiply(warp, event)
                    yield self.pause(ASK)
                case "store":
                    stores.last = self.store(warp, event)
                case "commit":
                    products.closed.append(products.last)
                case "commit stores":
                    stores.closed.append(stores.last)
                case "finish":
                    yield from self.wait(warp, products.finished(event.amount), "products")
                case "finish stores":
                    yield from self.wait(warp, stores.finished(event.amount), "stores")
                case "wait" if event.amount >= 0:
                    end = self.barriers[event.at].end_of(event.amount)
                    yield from self.wait(warp, end, self.brings.get(event.at, ""))
                case "come":
                    self.come(event, _Signal())
                case "sync":
                    yield from self.wait(warp, self.come(event, _Signal()), "turn")
                case "block":
                    yield from self.wait(warp, self.meet(), "block")

    def wait(self, warp, signal, of) -> Iterator[_Signal]:
        start = self.now
        if signal is not None and not signal.is_done:
            yield signal
            self.spans.append(Span(warp, "wait", of, start, self.now))

    def pause(self, cycles) -> _Signal:
        over = _Signal()
        self.after(cycles, lambda: self.fire(over))
        return over

    # --- units ---

    def compute(self, warp, operations, powers) -> Iterator[_Signal]:
        cycles = max(operations, powers * WARP_LANES / self.power_rate)
        unit, start, end = self.cuda[warp % self.gpu.sm_parts], self.now, _Signal()
        while cycles > 0:
            turn, cycles = min(cycles, TURN), cycles - TURN
            unit.ask(warp, turn, lambda *_, is_last=cycles <= 0: is_last and self.fire(end))
        yield end
        self.spans.append(Span(warp, "compute", "", start, self.now, powers))

    def multiply(self, warp, event) -> _Signal:
        done = _Signal()

        def ended(start, end):
            self.spans.append(Span(warp, "product", event.array, start, end))
            self.fire(done)

        who = warp if self.in_turns else 0
        self.tensor[warp % self.gpu.sm_parts].ask(who, event.amount / self.product_rate, ended)
        return done

    def copy(self, warp, event):
        assert self.gpu.latencies is not None  # `timeline` refuses such a GPU
        latency = self.gpu.latencies.l2

        def land():
            self.barriers[event.at].came += event.amount
            self.complete(event.at)

        def ended(start, end):
            self.spans.append(Span(warp, "copy", event.array, start + latency, end + latency))
            self.after(latency, land)

        self.engine.ask(0, event.amount / self.copy_rate, ended)

    def store(self, warp, event) -> _Signal:
        done = _Signal()

        def ended(start, end):
            self.spans.append(Span(warp, "store", event.array, start, end))
            self.fire(done)

        self.engine.ask(0, event.amount / self.copy_rate, ended)
        return done

    # --- barriers ---

    def arrive(self, at, count, expected):
        barrier = self.barriers[at]
        barrier.pending -= count
        barrier.expected += expected
        self.complete(at)

    def complete(self, at):
        barrier = self.barriers[at]
        if barrier.pending == 0 and barrier.expected == barrier.came:
            barrier.pending, barrier.expected, barrier.came = barrier.count, 0, 0
            barrier.phase += 1
            self.fire(barrier.end_of(barrier.phase - 1))

    def come(self, event, signal) -> _Signal:
        came, waiting = self.named.pop(event.at, (0, []))
        waiting.append(signal)
        if came + WARP_LANES < event.amount:
            self.named[event.at] = came + WARP_LANES, waiting
        else:
            for each in waiting:
                self.fire(each)
        return signal

    def meet(self) -> _Signal:
        self.at_block.append(_Signal())
        mine = self.at_block[-1]
        if len(self.at_block) == self.in_block:
            here, self.at_block = self.at_block, []
            for each in here:
                self.fire(each)
        return mine
