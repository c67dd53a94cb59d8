"""Steps whose copies and products run ahead: without any of their waits, arrivals, fences and barriers they are wrong.

The simulator must say so, in whatever order its warps ran.
"""

import re
from functools import cache
from inspect import signature
from pathlib import Path

import numpy as np
import pytest
from cells import run_cell
from sampling import sampled

from labkit import attention
from labkit.arrays.workspace import Workspace
from labkit.formats import BF16, E4M3
from labkit.simulator import host
from labkit.simulator.in_place import simulate_in_place

SLUGS = {
    "forward": ("pipelined", "wgmma", "overlap", "ping_pong", "persistent"),
    "backward": ("wgmma", "bulk_reduction"),
    "fp8": ("block_scaled", "summed_weights", "linear_codes"),
}
AHEAD = [step for name, slugs in SLUGS.items() for step in attention.ladder(name) if step.slug in slugs]
PROBLEMS = {
    "forward": attention.AttentionForward(1, 1, 129, 64, keys=600),  # two tiles of queries, five of keys or more
    "backward": attention.AttentionBackward(1, 1, 600, 64),  # seven tiles of queries, five of keys
    "fp8": attention.AttentionFP8(1, 1, 129, 64, keys=600),
}
WAITS = re.compile(r" +(cuda\.sync|ptx\.(\w+_(wait|sync|arrive|commit|init|async)|wgmma_fence)\(|prepare\()")
CHANGES = (
    (r", parity\)", ", 1 - parity)"),
    (r"1 - parity\)", "parity)"),
    (r"q_count % 2\)", "(q_count + 1) % 2)"),
    (r"\(q_count \+ 1\) % 2\)", "q_count % 2)"),
    (r"_wait\(0\)", "_wait(1)"),
    (r"wgmma_wait\(1\)", "wgmma_wait(2)"),
    (r"\([12] [+-] wg_idx, CONSUMERS", "(1, CONSUMERS"),
    (r", WARPGROUPS\)", ", 1)"),
    (r"\(([13]) \+ wg_idx, 128\)", r"(\1, 128)"),
    (r"V_tiles, prev_stage\)", "V_tiles, stage)"),
    (r"empty_v, prev_stage\)", "empty_v, stage)"),
)
FOR_THE_COMPILER = "passes at once"  # a wait of this kind
# Above the fence of a fragment that another function packed, and of accumulators that nobody touched since the last.
UNTOLD = "Begin acc += P B", "Begin dQ^T = K^T dS"


def wrong(step):
    """The step's source with one line left out or changed, and which."""
    lines = Path(step.module.__file__).read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines):
        if FOR_THE_COMPILER in line or any(words in lines[number - 1] for words in UNTOLD):
            continue
        others = [re.sub(before, after, line) for before, after in CHANGES if re.search(before, line)]
        if WAITS.match(line):
            others.append(re.match(" *", line)[0] + "pass")
        if line.startswith("    "):
            for other in others:
                text = "\n".join([*lines[:number], other, *lines[number + 1 :]])
                yield pytest.param(step, text, id=f"{step.ladder.name} {step.slug} {number + 1}{other.strip()}")


def format_of(ladder):
    return E4M3 if ladder == "fp8" else BF16


@cache
def operands_of(ladder):
    return PROBLEMS[ladder].operands(format_of(ladder))


def errors_of(step, text):
    operands = tuple(X.copy() if isinstance(X, np.ndarray) else X for X in operands_of(step.ladder.name))
    launches, found = run_cell(text)["launches"], []
    memory = {"workspace": Workspace(memory=host)} if "workspace" in signature(launches).parameters else {}
    for launch in launches(*operands, format=format_of(step.ladder.name), **memory):
        shared = {"shared_bytes": launch.shared_bytes}
        found += simulate_in_place(launch.kernel, launch.grid, launch.block, *launch.arguments, **shared).errors
        if found:
            break
    return found


@pytest.mark.parametrize("step", AHEAD, ids=lambda step: step.slug)
@pytest.mark.sample(2)
def test_a_step_as_it_stands_has_no_error(step):
    assert errors_of(step, Path(step.module.__file__).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(("step", "text"), sampled((case for step in AHEAD for case in wrong(step)), 8))
@pytest.mark.sample(3)
def test_a_step_without_one_of_its_waits_is_told(step, text):
    assert errors_of(step, text)
