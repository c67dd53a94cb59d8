"""Choice of the step, a kernel of a ladder, that computes attention: the fastest that this GPU has for such heads."""

from dataclasses import replace

from labkit.arrays.workspace import Workspace
from labkit.attention.decode.problem import AttentionDecode
from labkit.attention.problem import Attention
from labkit.calls.choice import ChosenStep, StepChooser, any_step
from labkit.formats import BF16, FP16, FP32, Format
from labkit.ladder import Step

FORMATS = FP32, BF16, FP16
MIN_UTILISATION = 0.95  # share of the blocks that the GPU holds at a time, for a grid that fills it


def is_deterministic(step: Step, problem: Attention) -> bool:
    """Whether a step returns the same bits each time."""
    return getattr(step.module, "DETERMINISTIC", True)


def fills_gpu(step: Step, problem: AttentionDecode) -> bool:
    """Whether equal blocks fill the GPU, or the step shares all work evenly."""
    utilisation = getattr(step.module, "utilisation", None)
    return utilisation is None or (not problem.ragged and utilisation(problem) >= MIN_UTILISATION)


# Attributes by which problems are compared with recorded ones, each with its weight.
SIZES = ("head_dim", 2), ("queries", 1), ("keys", 1), ("causal", 1)
SIZES_OF_CACHE = ("keys", 1), ("cached_heads", 1), ("head_dim", 1), ("page", 1 / 4)
DETERMINISTIC_STEPS = StepChooser("attention", SIZES, suits=is_deterministic, advice="convert Q, K and V to float32")
ALL_STEPS = replace(DETERMINISTIC_STEPS, suits=any_step, features=", in any order")
DECODING_STEPS = StepChooser("attention", SIZES_OF_CACHE, suits=fills_gpu, advice="take a newer GPU")


def choose_step(
    arrays: tuple, problem: Attention, format: Format, workspace: Workspace, deterministic: bool = True
) -> ChosenStep:
    """Choose the fastest step for arrays that fit the problem; `deterministic`: it returns the same bits each time.

    Return it with its launches. Raise ValueError if no step takes the arrays on this GPU.
    """
    return (DETERMINISTIC_STEPS if deterministic else ALL_STEPS).fastest(arrays, problem, format, workspace)


def choose_for_cache(
    arrays: tuple, problem: AttentionDecode, format: Format, workspace: Workspace, same_lengths: bool
) -> ChosenStep:
    """Choose the fastest step for queries of a cache; `same_lengths`: whether all sequences have equally many keys.

    Raise ValueError if no step takes the arrays on this GPU.
    """
    return DECODING_STEPS.fastest(arrays, replace(problem, ragged=not same_lengths), format, workspace)
