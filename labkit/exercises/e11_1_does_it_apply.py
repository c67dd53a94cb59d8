"""Exercise 11.1: an applicability rule, that of Winograd's F(4x4, 3x3)."""

from dataclasses import replace

import numpy as np

from labkit.conv import Forward, ladder
from labkit.exercises.exercise import Beyond, Exercise, Questions
from labkit.formats import format_named

PLAIN = Forward(N=2, C=8, H=12, W=12, K=8, R=3, S=3)
CASES = (  # what differs from a plain problem
    {},
    {"top": 1, "bottom": 1, "left": 1, "right": 1},
    {"top": 2, "right": 1},
    {"H": 13, "W": 11},
    {"H": 3, "W": 3},
    {"N": 1, "C": 1, "K": 1},
    {"flipped": True},
    {"R": 5, "S": 5},
    {"R": 1, "S": 1},
    {"R": 1},
    {"S": 1},
    {"S": 5},
    {"R": 9, "S": 1},
    {"R": 1, "S": 9},
    {"stride_h": 2, "stride_w": 2},
    {"stride_h": 2},
    {"stride_w": 2},
    {"dilation_h": 2, "dilation_w": 2},
    {"dilation_h": 3},
    {"dilation_w": 2},
    {"groups": 2},
    {"groups": 8},
    {"layout": "NHWC"},
)
DRAWN = {
    "R": (3, 3, 3, 3, 1, 2, 5),
    "S": (3, 3, 3, 3, 1, 2, 5),
    "stride_h": (1, 1, 1, 1, 1, 2, 3),
    "stride_w": (1, 1, 1, 1, 1, 2, 3),
    "dilation_h": (1, 1, 1, 1, 1, 1, 2),
    "dilation_w": (1, 1, 1, 1, 1, 1, 3),
    "groups": (1, 1, 1, 1, 1, 2, 4),
    "flipped": (False, True),
    "layout": ("NCHW",) * 6 + ("NHWC",),
}


def launch(rng, count):
    """As many problems as are asked for, or those of `CASES` if none are."""
    asked = [(replace(PLAIN, **case), "float32") for case in CASES] if count == 0 else []
    asked += [(PLAIN, "bfloat16"), (PLAIN, "float16")] if count == 0 else []
    for _ in range(count):
        asked.append((drawn(rng), str(rng.choice(("float32",) * 6 + ("bfloat16", "float16")))))

    def wrong(answers):
        for (problem, format), answer in zip(asked, answers, strict=True):
            why = misfit(problem, format)
            if answer is not True and answer is not False:
                return f"For {problem} in {format} the answer is {answer!r}: return True or False."
            if answer and why:
                return f"For {problem} in {format} the answer is True, but it does not apply: {why}."
            if not answer and not why:
                return f"For {problem} in {format} the answer is False, but it does apply: the step computes it."
        return ""

    label = f"{len(asked)} problems" if count else "problems that differ in one thing each"
    return Questions(label, tuple(asked), wrong)


def misfit(problem, format):
    """As the package's own step has it."""
    step = ladder("winograd").step("f4x4")
    if format_named(format) not in step.formats:
        return f"this step takes {' or '.join(map(str, step.formats))}, and the arrays hold {format}"
    return problem.misfit(step.module.TAKES).rstrip(".")


def drawn(rng: np.random.Generator) -> Forward:
    """A problem of which most things fit."""
    choices = {name: values[rng.integers(len(values))] for name, values in DRAWN.items()}
    C, K = (int(choices["groups"] * rng.integers(1, 9)) for _ in range(2))
    N, H, W = (int(rng.integers(*ends)) for ends in ((1, 9), (13, 40), (13, 40)))
    ends = {"top": "R", "bottom": "R", "left": "S", "right": "S"}
    pads = {name: int(rng.integers(0, choices[taps])) for name, taps in ends.items()}
    return Forward(N=N, C=C, H=H, W=W, K=K, **choices, **pads)


EXERCISE = Exercise(
    id="11.1",
    title="Does it apply?",
    task="Say whether Winograd's F(4x4, 3x3) computes a problem: return True or False. "
    "The rule in the cell refuses what the kernel computes, and takes what it does not.",
    points=2,
    function="applies",
    launch=launch,
    sizes=((0,),),
    drawn=((range(60, 90),), (Beyond(120),)),
    machine="python",
)
