"""Predicted time of an algorithm: each one is a number of matrix products (GEMMs), and copies around them.

    time = launches * LAUNCH_US + multiply-adds / rate + bytes / BYTES_PER_US

- Multiply-adds are those that the algorithm does not save. Winograd multiplies (m + 2)^2 matrices for tiles of m x m
  outputs, which is 2.25 (m = 2), 4 (m = 4) or 5.06 (m = 6) times fewer than by the definition. An FFT has T^2 / 2 + 2
  bins, each a complex product of four or three real ones. The count includes the padding to whole warp tiles, and
  the SMs left idle by products that are too small for all of them, unless those are split into parts. A depthwise
  convolution has no matrices: it takes the multiply-adds of its definition.
- Bytes are each operand once, and the workspace twice, since it is written and read.
- The rate comes from the step's recorded times on the most similar GPU: the median over all problems of multiply-adds
  per time without launches and bytes. A step without records gets the typical rate that it states, or one a little
  above that of the step before it.
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
from labkit.conv.interface.algorithms import placeholder_views
from labkit.conv.problem import Convolution
from labkit.formats import Format
from labkit.ladder import Launch, Step

LAUNCH_US = 2.0
BYTES_PER_US = 3e6  # of memory, by kernels that do little else
WARP_TILE = 64, 64  # rows and columns of a result per warp
SM_ELEMENTS = 2**15  # of a result, to keep an SM busy
TYPICAL_RATES = {4: 15e6, 2: 150e6, 1: 300e6}  # multiply-adds per microsecond by bytes of an operand, without records
STEP_GAIN = 1.01  # then, from one step to the next
MIN_GEMM_SHARE = 0.1  # of a recorded time


class Gemms(NamedTuple):
    """`count` products of rows x depth by depth x cols; each multiplication takes `factors` real ones."""

    count: int
    rows: int
    cols: int
    depth: int
    factors: int = 1
    is_split: bool = False  # along the depth, into as many parts as SMs need

    @property
    def multiply_adds(self) -> float:
        """Multiply-adds, including those that only fill warp tiles and SMs."""
        rows, cols = (-(-side // part) * part for side, part in zip((self.rows, self.cols), WARP_TILE))
        waves = self.count * rows * cols / (SM_ELEMENTS * cuda.get_current_device().MULTIPROCESSOR_COUNT)
        idle = 1 if self.is_split else ceil(waves) / waves
        return self.count * rows * cols * self.depth * self.factors * idle


def count_multiply_adds(step: Step, problem: Convolution, launches: Sequence[Launch]) -> float:
    """Return the multiply-adds of a step, for a problem and the step's launches for it."""
    if step.ladder.name == "depthwise":
        return problem.flops / 2
    return count_gemms(step, problem, launches).multiply_adds


def count_gemms(step: Step, problem: Convolution, launches: Sequence[Launch]) -> Gemms:
    """Return the matrix products of a step, for a problem and the step's launches for it."""
    if step.ladder.name == "winograd":
        return _count_winograd(step, problem)
    return _count_fft(step, launches) if step.ladder.name == "fft" else _count_direct(step, problem)


def _count_direct(step, problem):
    """By the definition: each output, pixel or tap is one sum of products."""
    N, C, K, groups = problem.N, problem.C // problem.groups, problem.K // problem.groups, problem.groups
    taps, outputs = problem.R * problem.S, problem.P * problem.Q
    is_split = "parts" in signature(step.module.launches).parameters
    if problem.result == "y":
        return Gemms(groups, K, N * outputs, C * taps, is_split=is_split)
    if problem.result == "w":
        return Gemms(groups, K, C * taps, N * outputs, is_split=is_split)
    strides = problem.stride_h * problem.stride_w  # a pixel is under one tap in `strides`
    return Gemms(groups, C, N * problem.H * problem.W, -(-K * taps // strides))


def _count_winograd(step, problem):
    """One product per element of a transformed tile."""
    is_data = problem.result == "x"
    height, width = (problem.H, problem.W) if is_data else (problem.P, problem.Q)
    rows, depth = (problem.C, problem.K) if is_data else (problem.K, problem.C)
    return Gemms(step.TILE**2, rows, problem.N * -(-height // step.OUT) * -(-width // step.OUT), depth)


def _count_fft(step, launches):
    """One complex product per frequency, in the last launch but one."""
    *_, spectra, rows, cols, depth = launches[-2].arguments
    return Gemms(spectra.shape[0], rows, cols, depth, getattr(step.module, "FACTORS", 4))


def predict_ms(
    step: Step, problem: Convolution, format: Format, launches: Sequence[Launch], workspace_bytes: int
) -> float:
    """Return the predicted time of a step, for a problem and the step's launches and workspace for it."""
    capability = tuple(cuda.get_current_device().compute_capability)
    rate = _recorded_rate(step, format, tuning.gpu_name(), capability)
    gemm_us = count_multiply_adds(step, problem, launches) / rate
    return (overhead_us(problem, format, len(launches), workspace_bytes) + gemm_us) / 1e3


def overhead_us(problem: Convolution, format: Format, launches: int, workspace_bytes: int) -> float:
    """Return the time of launches and of memory traffic."""
    return launches * LAUNCH_US + (problem.min_bytes(format) + 2 * workspace_bytes) / BYTES_PER_US


@lru_cache(256)  # steps
def _recorded_rate(step, format, gpu, capability):
    """Multiply-adds per microsecond, from records of the most similar GPU."""
    for machine in results.nearest(step.ladder.record, gpu, capability):
        rows = results.load(step.ladder.record, machine).select(step=step.slug)
        times_us = {}
        for row in [row for row in rows if row["dtype"] == format.name] or rows:
            problem = step.problem(**{field.name: row[field.name] for field in fields(step.problem)})
            times_us[problem] = row["time_ms"] * 1e3
        if times_us:
            return median(_rate_of(step, problem, format, time_us) for problem, time_us in times_us.items())
    typical_rate = TYPICAL_RATES[format.itemsize] * STEP_GAIN ** step.ladder.steps.index(step)
    return getattr(step.module, "TYPICAL_RATE", typical_rate)


def _rate_of(step, problem, format, time_us):
    """Multiply-adds per microsecond in a recorded time."""
    workspace = CountingWorkspace()
    launches = step.launches(*placeholder_views(problem, format), problem, format=format, workspace=workspace)
    gemm_us = time_us - overhead_us(problem, format, len(launches), workspace.size_bytes)
    return count_multiply_adds(step, problem, launches) / max(gemm_us, MIN_GEMM_SHARE * time_us)
