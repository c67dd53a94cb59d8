"""Forecast of a launch's time on a named GPU, and the unit that limits it.

The units of a GPU work in parallel, so the slowest unit sets the time, unless too few warps keep it busy: then latency
does. Throughput is the lesser of a throughput bound and a latency bound (Volkov, Understanding Latency Hiding on GPUs,
2016, chapter 4). To the bounds of `labkit.forecast.roofline` the model adds

- whole blocks: some SMs get one block more than others, and the launch lasts as long as these;
- instruction issue: one instruction per cycle in each part of an SM;
- latency, by Little's law: a warp issues the loads of one source line, then waits for the slowest of them, and all
  blocks that an SM holds wait at the same time (left out if the GPU's latencies are unknown).

Nothing is fitted. The model leaves out: the launch itself (2 to 7 us), waits at barriers, loads that the compiler
issues earlier than the source, and clocks below the highest.
"""

from collections import defaultdict
from dataclasses import dataclass
from math import ceil, prod

from labkit.forecast.roofline import Term, TimeBound, longest_term, unit_terms
from labkit.forecast.sass import Sass
from labkit.machine import gpus
from labkit.machine.gpus import Gpu, Latencies
from labkit.machine.occupancy import USUAL_REGISTERS, Occupancy, occupancy
from labkit.trace import TENSOR, WARP_LANES, SiteCounters, Trace


@dataclass(frozen=True, repr=False)
class TimeModel(TimeBound):
    """Forecast of a launch's time; `waves` is the number of blocks over those that the GPU holds at a time."""

    occupancy: Occupancy
    waves: float

    verdict = "about"


def modelled_time(
    trace: Trace, gpu: str | Gpu | None = None, code: Sass | None = None, registers: int | None = None
) -> TimeModel:
    """Return the forecast of a traced launch's time on a GPU, and the unit that limits it.

    Parameters
    ----------
    trace : Trace
        A simulated launch, or a sample of one (then DRAM traffic is unknown, and L1 misses count as L2 hits).
    gpu : str or Gpu, optional
        GPU that runs it; by default the trace's. Cache hits stay the trace's.
    code : Sass, optional
        The kernel's machine code, which has the instructions and registers. Without it, only the source's loads,
        stores and multiply-adds count as instructions.
    registers : int, optional
        Registers of a thread; by default those of `code`, else the usual number.

    Raises
    ------
    ValueError
        An SM of that GPU cannot hold one block.
    """
    figures = gpu if isinstance(gpu, Gpu) else gpus.gpu(gpu or trace.gpu)
    registers = registers or (code and code.registers) or USUAL_REGISTERS
    resident = occupancy(figures, prod(trace.block), trace.shared_bytes, registers)
    if not resident.blocks:
        raise ValueError(f"{resident}: make the block smaller")
    blocks = prod(trace.grid)
    waves = blocks / (figures.sms * resident.blocks)
    evenly_used_sms = blocks / ceil(blocks / figures.sms)
    terms = unit_terms(trace, figures, evenly_used_sms)
    terms["instruction issue"] = _issue(trace, figures, evenly_used_sms, code)
    if figures.latencies:
        terms["latency"] = _latency(trace, figures, figures.latencies, resident, waves)
    return TimeModel(*longest_term(terms), figures.name, resident, waves)


def _issue(trace, gpu, sms, code):
    executed = code.executed(trace) if code else None
    if executed is None:
        by_dtype = trace.counters.flops_by_dtype
        flops = sum(n for dtype, n in by_dtype.items() if not dtype.endswith(TENSOR))  # an `mma` is an access
        counted = sum(site.requests for site in trace.sites) + flops / 2 / WARP_LANES
        unit = f"{counted:,.0f} loads, stores and multiply-adds of warps"
    else:
        counted, unit = executed, f"{executed:,.0f} instructions of warps"
    rate = gpu.sm_parts * sms * gpu.clock_ghz * 1e6
    return Term(counted / rate, f"{unit}, {gpu.sm_parts} per cycle / ({sms:.4g} SMs x {gpu.clock_ghz:g} GHz)")


def _latency(trace, gpu, latencies, resident, waves):
    """Return the latency term: the warps of a wave wait at the same time, each once for the loads of a source line."""
    sites_by_line = defaultdict(list)
    for counted in trace.sites:
        if counted.site.kind == "load" and counted.site.space in ("global", "shared") and counted.requests:
            sites_by_line[counted.site.line].append(counted)
    warps = prod(trace.grid) * resident.warps_per_block
    cycles = sum(
        max(c.requests for c in sites) / warps * max(_wait(c, latencies) for c in sites)
        for sites in sites_by_line.values()
    )
    return Term(
        ceil(waves) * cycles / (gpu.clock_ghz * 1e6),
        f"{ceil(waves)} waves of {resident.blocks} blocks per SM x {cycles:,.0f} cycles that each warp waits"
        f" / {gpu.clock_ghz:g} GHz",
    )


def _wait(counted: SiteCounters, latencies: Latencies) -> float:
    """Return the mean latency in cycles of one request of a site: that of its slowest sector."""
    if counted.site.space == "shared":
        return latencies.l1  # the same memory
    beyond_l1 = counted.sectors - counted.l1_hits
    beyond_l2 = 0 if counted.l2_hits is None else beyond_l1 - counted.l2_hits
    to_l2, to_dram = (min(1, sectors / counted.requests) for sectors in (beyond_l1, beyond_l2))
    return latencies.l1 + to_l2 * (latencies.l2 - latencies.l1) + to_dram * (latencies.dram - latencies.l2)
