"""Timeline of the warps of an SM: the order is that of a simulated run, the durations come from a model.

The order of each warp's work, and all dependences, are the run's events (`labkit.trace.Event`): requests, arrivals and
waits. An event has `at`, its barrier; `amount`, its bytes, FLOP, arrivals, threads, phase or groups in flight, by its
kind; and `operations` and `powers`, a lane's so far. The durations are computed, for one SM that runs the recorded
blocks one after another:

- Tensor cores: each part of the SM delivers its share of the peak, and executes one wgmma at a time. If two of its
  warps have issued some, it either alternates between them or serves them in order of issue. Which of these a GPU does
  is not published, so both can be computed.
- CUDA cores: the work of a warp between two events takes the longer of the times for its operations and for its powers
  of two. Warps of a part alternate here too.
- Copies: one at a time, at the SM's share of the L2 bandwidth; each arrives one L2 latency later.
- Stores to global memory: TMA's as they are issued, threads' when their warp ends; they share the bandwidth of copies.

Nothing else takes time: neither indices, comparisons, conversions, maxima, barriers, nor the launch of a block. This
module measures nothing on a GPU.
"""

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from itertools import groupby

import numpy as np

from labkit.machine import gpus
from labkit.machine.gpus import Gpu
from labkit.trace import TENSOR, WARP_LANES, Event, Trace

TENSOR_FLOP_PER_CYCLE = 4096  # of an SM, in 16-bit formats (NVIDIA H100 whitepaper, 2022)
REFERENCE_PRECISION = "float16 tensor"
EXP2_PER_CYCLE = 16  # of an SM (CUDA C++ Programming Guide, "Throughput of Native Arithmetic Instructions")
ISSUE_CYCLES = 4  # cycles in which a warp issues a wgmma: an assumption, and short compared with the wgmma
TURN_CYCLES = 32  # cycles after which computing warps alternate


@dataclass(frozen=True)
class Span:
    """Work of a warp, or of a unit for it, from `start` to `end` in cycles.

    Attributes
    ----------
    does
        "product" (wgmma on tensor cores), "copy" or "store" (TMA), "compute", or "wait".
    of
        The shared array of a product, copy or store. For a wait its reason: "products", "stores", "turn" at a named
        barrier, "block", the array that a copy loads, or "" for a buffer that other warps must release.
    powers
        Powers of two of a "compute".
    """

    warp: int
    does: str
    of: str
    start: float
    end: float
    powers: float = 0.0


@dataclass(frozen=True)
class Bubble:
    """Cycles in which tensor cores idle; `at_edge`: before the first product of a block, or after its last."""

    start: float
    end: float
    at_edge: bool


@dataclass(frozen=True, repr=False)
class Timeline:
    """Spans of blocks on one SM, in cycles from 0.

    Attributes
    ----------
    ends
        Cycles at which blocks end.
    moments
        Every event, and the cycle at which its warp goes on after it, in the order of these cycles.
    """

    kernel: str
    gpu: Gpu
    ends: tuple[float, ...]
    spans: tuple[Span, ...]
    moments: tuple[tuple[Event, float], ...] = ()

    @property
    def cycles(self) -> float:
        return self.ends[-1]

    def products(self, part: int = 0) -> list[Span]:
        """Return the products of a part of the SM in order. All parts do the same."""
        parts = self.gpu.sm_parts
        return sorted((s for s in self.spans if s.does == "product" and s.warp % parts == part), key=lambda s: s.start)

    def bubbles(self) -> list[Bubble]:
        """Return the spans in which the tensor cores idle."""
        bubbles, begin, products = [], 0.0, self.products()
        for end in self.ends:
            products_of_block = [span for span in products if begin <= span.start < end]
            starts = [*(span.start for span in products_of_block), end]
            stops = [begin, *(span.end for span in products_of_block)]
            edges = 0, len(products_of_block)
            bubbles += [
                Bubble(stop, start, number in edges)
                for number, (stop, start) in enumerate(zip(stops, starts, strict=True))
                if start > stop
            ]
            begin = end
        return bubbles

    @property
    def idle_share(self) -> float:
        """Share of the time in which the tensor cores idle."""
        return sum(bubble.end - bubble.start for bubble in self.bubbles()) / self.cycles

    def __repr__(self):
        idle = f"tensor cores idle in {self.idle_share:.0%} of them"
        return f"<Timeline of {self.kernel}: {self.cycles:,.0f} cycles, {idle}>"


def timeline(trace: Trace, gpu: str | Gpu | None = None, in_turns: bool = True) -> Timeline:
    """Compute the timeline of a run's recorded blocks on one SM, one after another.

    Parameters
    ----------
    trace
        Trace of a kernel that multiplies by `wgmma`, with recorded blocks.
    gpu
        GPU whose figures count; by default the trace's GPU.
    in_turns
        Whether tensor cores alternate between warps with issued products; if not, they serve them in order of issue.

    Raises
    ------
    ValueError
        The trace has no `wgmma`, or the GPU has no tensor cores for it, or no known latencies.
    """
    figures = gpu if isinstance(gpu, Gpu) else gpus.gpu(gpu or trace.gpu)
    if not any(event.kind == "product" for event in trace.events):
        raise ValueError(
            f"`{trace.kernel}` issues no `wgmma` in the recorded blocks: take a kernel with "
            "`ptx.wgmma`, and record a block that multiplies"
        )
    dtype = next(name for name in trace.counters.flops_by_dtype if name.endswith(TENSOR))
    if figures.latencies is None or dtype not in figures.peak_tflops:
        raise ValueError(f"no latencies, or no {dtype} cores, are known of one {figures.name}: take an H100")
    spans, moments, ends = [], [], [0.0]
    order = sorted(trace.events, key=lambda event: event.block[::-1])
    for index, events in groupby(order, key=lambda event: event.block):
        block = _Block(list(events), _stored_bytes(trace, index), figures, dtype, in_turns, ends[-1])
        block.run()
        spans += block.spans
        moments += block.moments
        ends.append(block.now)
    return Timeline(trace.kernel, figures, tuple(ends[1:]), tuple(spans), tuple(moments))


def _stored_bytes(trace: Trace, block) -> Counter:
    """Return the bytes that the threads of each warp of a recorded block store to global memory."""
    samples, stored = trace.samples, Counter()
    for number, counted in enumerate(trace.sites):
        if (counted.site.space, counted.site.kind) != ("global", "store") or block not in samples.blocks:
            continue
        for row in np.flatnonzero((samples.site == number) & (samples.block == samples.blocks.index(block))):
            stored[int(samples.warp[row])] += int((samples.index[row] >= 0).sum()) * counted.site.bytes
    return stored


# --- parts of a block ------------------------------------------------------------------------------


class _Signal:
    """A condition that becomes true once, and for which warps wait."""

    def __init__(self):
        self.is_done = False
        self.waiting: list[Iterator] = []


class _Unit:
    """A unit that executes one request at a time; clients with several requests alternate."""

    def __init__(self, block):
        self.block = block
        self.requests: dict[int, deque] = {}
        self.is_busy = False

    def request(self, client, cycles, done):
        """Request work of a client for some cycles; then `done(start, end)` is called."""
        self.requests.setdefault(client, deque()).append((cycles, done))
        if not self.is_busy:
            self._next()

    def _next(self):
        client = next((client for client, queue in self.requests.items() if queue), None)
        self.is_busy = client is not None
        if client is None:
            return
        cycles, done = self.requests[client].popleft()
        start = self.block.now

        def end():
            self.requests[client] = self.requests.pop(client)  # the others' turn comes first
            done(start, self.block.now)
            self._next()

        self.block.after(cycles, end)


@dataclass
class _Barrier:
    """An mbarrier with its phases; see `labkit.ptx.mbarriers`."""

    count: int
    pending: int = 0
    expected_bytes: int = 0
    arrived_bytes: int = 0
    phase: int = 0
    ends: dict[int, _Signal] = field(default_factory=dict)

    def phase_end(self, phase) -> _Signal:
        return self.ends.setdefault(phase, _Signal())


class _Groups:
    """Groups of asynchronous work of a warp; a group is done when its last work is."""

    def __init__(self):
        self.last: _Signal | None = None
        self.closed: list[_Signal | None] = []

    def finished(self, pending) -> _Signal | None:
        """Return the signal that all groups except the newest `pending` ones are done."""
        return self.closed[-1 - pending] if len(self.closed) > pending else None


class _Block:
    """A block on an SM: its warps follow their events, and units execute their requests."""

    def __init__(self, events: list[Event], stored_bytes: Counter, gpu: Gpu, dtype: str, in_turns: bool, begin: float):
        self.now = begin
        self.stored_bytes = stored_bytes
        self.in_turns = in_turns
        self.queue: list[tuple] = []
        self.number = 0
        self.spans: list[Span] = []
        self.moments: list[tuple[Event, float]] = []
        self.gpu = gpu
        share = gpu.peak_tflops[dtype] / gpu.peak_tflops[REFERENCE_PRECISION]
        self.product_rate = TENSOR_FLOP_PER_CYCLE * share / gpu.sm_parts
        self.exp2_rate = EXP2_PER_CYCLE / gpu.sm_parts
        self.copy_rate = gpu.l2_bytes_per_clock / gpu.sms
        self.tensor, self.cuda = ([_Unit(self) for _ in range(gpu.sm_parts)] for _ in range(2))
        self.tma = _Unit(self)
        self.barriers: dict[str, _Barrier] = {}
        self.named_barriers: dict[str, tuple[int, list[_Signal]]] = {}
        self.at_block: list[_Signal] = []
        self.loaded_arrays = {event.at: event.array for event in events if event.kind == "copy"}
        self.warps: dict[int, list[Event]] = {}
        for event in events:
            self.warps.setdefault(event.warp, []).append(event)
        self.warps_at_block = sum(any(event.kind == "block" for event in own) for own in self.warps.values())
        self.running = len(self.warps)

    def run(self):
        for warp, events in self.warps.items():
            self.after(0, partial(self.resume, self.follow(warp, events)))
        while self.queue:
            self.now, _, action = heappop(self.queue)
            action()
        if self.running:
            raise ValueError("the events of this run do not fit together: some of its warps wait for ever")

    def after(self, cycles, action):
        self.number += 1
        heappush(self.queue, (self.now + cycles, self.number, action))

    def resume(self, warp):
        """Run a warp until it waits."""
        for signal in warp:
            if not signal.is_done:
                signal.waiting.append(warp)
                return
        self.running -= 1

    def fire(self, signal):
        signal.is_done = True
        for warp in signal.waiting:
            self.resume(warp)

    def follow(self, warp: int, events: list[Event]) -> Iterator[_Signal]:
        """Replay the events of a warp, and yield the signals for which it waits."""
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
                    yield self.pause(ISSUE_CYCLES)
                case "store":
                    stores.last = self.store(warp, event.amount, event.array)
                case "commit":
                    products.closed.append(products.last)
                case "commit stores":
                    stores.closed.append(stores.last)
                case "finish":
                    yield from self.wait(warp, products.finished(event.amount), "products")
                case "finish stores":
                    yield from self.wait(warp, stores.finished(event.amount), "stores")
                case "wait" if event.amount >= 0:
                    end = self.barriers[event.at].phase_end(event.amount)
                    yield from self.wait(warp, end, self.loaded_arrays.get(event.at, ""))
                case "barrier arrive":
                    self.arrive_named(event, _Signal())
                case "barrier sync":
                    yield from self.wait(warp, self.arrive_named(event, _Signal()), "turn")
                case "block":
                    yield from self.wait(warp, self.arrive_block(), "block")
                case "end" if self.stored_bytes[warp]:
                    yield from self.wait(warp, self.store(warp, self.stored_bytes[warp]), "stores")
            self.moments.append((event, self.now))

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
        cycles = max(operations, powers * WARP_LANES / self.exp2_rate)
        unit, start, end = self.cuda[warp % self.gpu.sm_parts], self.now, _Signal()
        while cycles > 0:
            turn, cycles = min(cycles, TURN_CYCLES), cycles - TURN_CYCLES
            unit.request(warp, turn, lambda *_, is_last=cycles <= 0: is_last and self.fire(end))
        yield end
        self.spans.append(Span(warp, "compute", "", start, self.now, powers))

    def multiply(self, warp, event) -> _Signal:
        done = _Signal()

        def ended(start, end):
            self.spans.append(Span(warp, "product", event.array, start, end))
            self.fire(done)

        client = warp if self.in_turns else 0
        self.tensor[warp % self.gpu.sm_parts].request(client, event.amount / self.product_rate, ended)
        return done

    def copy(self, warp, event):
        assert self.gpu.latencies is not None  # `timeline` refuses such a GPU
        latency = self.gpu.latencies.l2

        def land():
            self.barriers[event.at].arrived_bytes += event.amount
            self.complete(event.at)

        def ended(start, end):
            self.spans.append(Span(warp, "copy", event.array, start + latency, end + latency))
            self.after(latency, land)

        self.tma.request(0, event.amount / self.copy_rate, ended)

    def store(self, warp, stored_bytes, array="") -> _Signal:
        done = _Signal()

        def ended(start, end):
            self.spans.append(Span(warp, "store", array, start, end))
            self.fire(done)

        self.tma.request(0, stored_bytes / self.copy_rate, ended)
        return done

    # --- barriers ---

    def arrive(self, at, count, expected_bytes):
        barrier = self.barriers[at]
        barrier.pending -= count
        barrier.expected_bytes += expected_bytes
        self.complete(at)

    def complete(self, at):
        barrier = self.barriers[at]
        if barrier.pending == 0 and barrier.expected_bytes == barrier.arrived_bytes:
            barrier.pending, barrier.expected_bytes, barrier.arrived_bytes = barrier.count, 0, 0
            barrier.phase += 1
            self.fire(barrier.phase_end(barrier.phase - 1))

    def arrive_named(self, event, signal) -> _Signal:
        """Let a warp arrive at a named barrier (PTX `barrier.arrive` or `.sync`) that opens at `amount` threads."""
        threads, waiting = self.named_barriers.pop(event.at, (0, []))
        waiting.append(signal)
        if threads + WARP_LANES < event.amount:
            self.named_barriers[event.at] = threads + WARP_LANES, waiting
        else:
            for other in waiting:
                self.fire(other)
        return signal

    def arrive_block(self) -> _Signal:
        signal = _Signal()
        self.at_block.append(signal)
        if len(self.at_block) == self.warps_at_block:
            waiting, self.at_block = self.at_block, []
            for other in waiting:
                self.fire(other)
        return signal
