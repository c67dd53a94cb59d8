"""How long an algorithm may take, without timing it: every one is a number of matrix products, and copies around them.

    time = launches * LAUNCH_US + multiply-adds / rate + bytes / BYTES_US

- Multiply-adds are those that are left after the algorithm's saving: Winograd multiplies (m + 2)^2 matrices where tiles
  of m x m outputs lie side by side, which is 2.25 (m = 2), 4 (m = 4) or 5.06 (m = 6) times less than the definition;
  through frequencies each of T^2 / 2 + 2 bins is a product of complex numbers, four or three real ones each.
  They count as many more as the result's sides need to be whole parts of a warp, and as SMs are left idle by products
  that are too small for all of them, unless those are cut into parts.
- Bytes are each operand once, and the workspace twice, since it is written and read.
- The rate is what the step's recorded times say, of the most similar GPU that it was recorded on: the median over all
  problems of multiply-adds over the time that is left when launches and bytes are taken off. A step that was never
  recorded is taken to run at a typical rate, and a little faster than the step before it.
"""

from collections.abc import Sequence
from dataclasses import fields
from functools import lru_cache
from inspect import signature
from math import ceil
from statistics import median
from typing import NamedTuple

from labkit import cuda, results
from labkit.arrays.workspace import CountingWorkspace
from labkit.calls import tuning
from labkit.conv.interface.algorithms import described
from labkit.conv.problem import Convolution
from labkit.formats import Format
from labkit.ladder import Launch, Step

LAUNCH_US = 2.0
BYTES_US = 3e6  # of memory, by kernels that do little else
WARP = 64, 64  # rows and columns of a result, that a warp computes
OF_SM = 2**15  # elements of a result that keep an SM busy
TYPICAL = {4: 15e6, 2: 150e6, 1: 300e6}  # multiply-adds in a microsecond by bytes of an operand, if none is recorded
RISE = 1.01  # then, from a step to the next
LEAST_LEFT = 0.1  # of a recorded time, that multiplying took


class Products(NamedTuple):
    """So many matrix products of rows x depth by depth x cols, each multiplication made of so many real ones."""

    count: int
    rows: int
    cols: int
    depth: int
    factors: int = 1
    is_cut: bool = False  # along the depth, into as many parts as SMs need

    @property
    def multiply_adds(self) -> float:
        """With those that fill up warps and SMs."""
        rows, cols = (-(-side // part) * part for side, part in zip((self.rows, self.cols), WARP))
        rounds = self.count * rows * cols / (OF_SM * cuda.get_current_device().MULTIPROCESSOR_COUNT)
        waiting = 1 if self.is_cut else ceil(rounds) / rounds
        return self.count * rows * cols * self.depth * self.factors * waiting


def products(step: Step, problem: Convolution, launches: Sequence[Launch]) -> Products:
    """What a step multiplies for a problem, for which it makes these launches."""
    if step.ladder.name == "winograd":
        return _in_tiles(step, problem)
    return _in_bins(step, launches) if step.ladder.name == "fft" else _as_defined(step, problem)


def _as_defined(step, problem):
    """By the definition: outputs, pixels or taps, each a sum of as many products as there are."""
    N, C, K, groups = problem.N, problem.C // problem.groups, problem.K // problem.groups, problem.groups
    taps, places = problem.R * problem.S, problem.P * problem.Q
    is_cut = "parts" in signature(step.module.launches).parameters
    if problem.result == "y":
        return Products(groups, K, N * places, C * taps, is_cut=is_cut)
    if problem.result == "w":
        return Products(groups, K, C * taps, N * places, is_cut=is_cut)
    strides = problem.stride_h * problem.stride_w  # a pixel meets one of so many taps
    return Products(groups, C, N * problem.H * problem.W, -(-K * taps // strides))


def _in_tiles(step, problem):
    """Winograd: a product for each place in a tile."""
    to_images = problem.result == "x"
    height, width = (problem.H, problem.W) if to_images else (problem.P, problem.Q)
    rows, depth = (problem.C, problem.K) if to_images else (problem.K, problem.C)
    return Products(step.TILE**2, rows, problem.N * -(-height // step.OUT) * -(-width // step.OUT), depth)


def _in_bins(step, launches):
    """Frequencies: a product of complex numbers for each, which the last launch but one makes."""
    *_, spectra, rows, cols, depth = launches[-2].arguments
    return Products(spectra.shape[0], rows, cols, depth, getattr(step.module, "FACTORS", 4))


def predicted_ms(step: Step, problem: Convolution, format: Format, launches: Sequence[Launch], workspace_bytes: int):
    """How long a step may take for a problem, for which it makes these launches and needs so much workspace."""
    multiplying_us = products(step, problem, launches).multiply_adds / _rate(step, format)
    return (fixed_us(problem, format, len(launches), workspace_bytes) + multiplying_us) / 1e3


def fixed_us(problem: Convolution, format: Format, launches: int, workspace_bytes: int) -> float:
    """Of launches, and of what crosses memory."""
    return launches * LAUNCH_US + (problem.min_bytes(format) + 2 * workspace_bytes) / BYTES_US


def _rate(step, format):
    """Multiply-adds in a microsecond, as recorded on the most similar GPU."""
    return _recorded_rate(step, format, tuning.gpu_name(), tuple(cuda.get_current_device().compute_capability))


@lru_cache(256)  # steps
def _recorded_rate(step, format, gpu, capability):
    for machine in results.nearest(step.ladder.record, gpu, capability):
        rows = results.load(step.ladder.record, machine).select(step=step.slug)
        of_format = [row for row in rows if row["dtype"] == format.name]
        found = {}
        for row in of_format or rows:
            problem = step.problem(**{field.name: row[field.name] for field in fields(step.problem)})
            found[problem] = row["time_ms"] * 1e3
        rates = [_reached(step, problem, format, time_us) for problem, time_us in found.items()]
        if rates:
            return median(rates)
    return TYPICAL[format.itemsize] * RISE ** step.ladder.steps.index(step)


def _reached(step, problem, format, time_us):
    """Multiply-adds in a microsecond of a time that was recorded."""
    workspace = CountingWorkspace()
    launches = step.launches(*described(problem, format), problem, format=format, workspace=workspace)
    left_us = time_us - fixed_us(problem, format, len(launches), workspace.size_bytes)
    return products(step, problem, launches).multiply_adds / max(left_us, LEAST_LEFT * time_us)
