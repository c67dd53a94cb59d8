"""A forecast of how long a launch takes on a named GPU, and what sets it.

The units of a GPU work side by side, so the slowest of them sets the time, unless too few warps are there to keep it
busy: then the time is what the warps wait. That is the lesser of a throughput and a latency bound (Volkov,
Understanding Latency Hiding on GPUs, 2016, chapter 4). To the bounds of `labkit.forecast.roofline` the model adds

- whole blocks: an SM gets one more block or one less, and the launch lasts as long as the SM that gets most;
- instruction issue: one instruction a cycle in each part of an SM;
- latency, by Little's law: a warp issues the loads of one line of the source, then waits for the slowest of them, and
  as many blocks wait at a time as an SM holds (left out where the GPU's latencies are not known).

Nothing in it is fitted. What it leaves out: the launch itself (2 to 7 microseconds), waiting at barriers, loads that
the compiler issues earlier than the source has them, and clocks below the highest.
"""

from collections import defaultdict
from dataclasses import dataclass
from math import ceil, prod

from labkit.forecast.roofline import Term, TimeBound, longest, unit_terms
from labkit.forecast.sass import Sass
from labkit.machine import gpus
from labkit.machine.gpus import Gpu, Latencies
from labkit.machine.occupancy import USUAL_REGISTERS, Occupancy, occupancy
from labkit.trace import TENSOR, WARP_LANES, SiteCounters, Trace


@dataclass(frozen=True, repr=False)
class TimeModel(TimeBound):
    """The forecast, as `TimeBound`; `waves` is how many times the GPU is filled with the blocks it holds at a time."""

    occupancy: Occupancy
    waves: float

    verdict = "about"


def modelled_time(
    trace: Trace, gpu: str | Gpu | None = None, code: Sass | None = None, registers: int | None = None
) -> TimeModel:
    """How long the traced launch should take on a GPU, and what limits it.

    Parameters
    ----------
    trace : Trace
        A simulated launch, or a sample of one (then nothing is known of DRAM, and what L1 lacks counts as in L2).
    gpu : str or Gpu, optional
        The GPU to run it on; the one the trace was made for when left out. Cache hits stay the trace's.
    code : Sass, optional
        The kernel's machine code, which tells the instructions and registers. Without it the instructions are
        those that the source's loads, stores and multiply-adds take at the very least.
    registers : int, optional
        Registers of a thread, if they are known otherwise; the usual number when left out.

    Raises
    ------
    ValueError
        An SM of that GPU cannot hold one block.
    """
    figures = gpu if isinstance(gpu, Gpu) else gpus.gpu(gpu or trace.gpu)
    registers = registers or (code and code.registers) or USUAL_REGISTERS
    held = occupancy(figures, prod(trace.block), trace.shared_bytes, registers)
    if not held.blocks:
        raise ValueError(f"{held}: make the block smaller")
    blocks = prod(trace.grid)
    waves = blocks / (figures.sms * held.blocks)
    evenly_used_sms = blocks / ceil(blocks / figures.sms)
    terms = unit_terms(trace, figures, evenly_used_sms)
    terms["instruction issue"] = _issue(trace, figures, evenly_used_sms, code)
    if figures.latencies:
        terms["latency"] = _latency(trace, figures, figures.latencies, held, waves)
    return TimeModel(*longest(terms), figures.name, held, waves)


def _issue(trace, gpu, sms, code):
    executed = code.executed(trace) if code else None
    if executed is None:
        by_dtype = trace.counters.flops_by_dtype
        flops = sum(n for dtype, n in by_dtype.items() if not dtype.endswith(TENSOR))  # an `mma` is an access
        counted = sum(site.requests for site in trace.sites) + flops / 2 / WARP_LANES
        what = f"{counted:,.0f} loads, stores and multiply-adds of warps"
    else:
        counted, what = executed, f"{executed:,.0f} instructions of warps"
    rate = gpu.sm_parts * sms * gpu.clock_ghz * 1e6
    return Term(counted / rate, f"{what}, {gpu.sm_parts} a cycle / ({sms:.4g} SMs x {gpu.clock_ghz:g} GHz)")


def _latency(trace, gpu, latencies, held, waves):
    """The warps that an SM holds wait at the same time, wave after wave; a warp waits once for the loads of a line."""
    of_line = defaultdict(list)
    for counted in trace.sites:
        if counted.site.kind == "load" and counted.site.space in ("global", "shared") and counted.requests:
            of_line[counted.site.line].append(counted)
    warps = prod(trace.grid) * held.warps_per_block
    cycles = sum(
        max(c.requests for c in sites) / warps * max(_wait(c, latencies) for c in sites) for sites in of_line.values()
    )
    return Term(
        ceil(waves) * cycles / (gpu.clock_ghz * 1e6),
        f"{ceil(waves)} waves of {held.blocks} blocks an SM x {cycles:,.0f} cycles that each warp waits"
        f" / {gpu.clock_ghz:g} GHz",
    )


def _wait(counted: SiteCounters, latencies: Latencies) -> float:
    """Cycles that one request of a site waits on average: for the farthest of its sectors."""
    if counted.site.space == "shared":
        return latencies.l1  # the same memory, which answers no later
    beyond_l1 = counted.sectors - counted.l1_hits
    beyond_l2 = 0 if counted.l2_hits is None else beyond_l1 - counted.l2_hits
    to_l2, to_dram = (min(1, sectors / counted.requests) for sectors in (beyond_l1, beyond_l2))
    return latencies.l1 + to_l2 * (latencies.l2 - latencies.l1) + to_dram * (latencies.dram - latencies.l2)
