"""The rule that says which convolutions Winograd's F(4x4, 3x3) can compute."""

import re
from dataclasses import replace
from typing import Any

from labkit.checking import Above, Exercise, Questions
from labkit.conv import Forward, ladder
from labkit.formats import format_named

PLAIN = Forward(N=2, C=8, H=12, W=12, K=8, R=3, S=3)
CASES = (  # differences from a plain problem
    {},
    {"top": 1, "bottom": 1, "left": 1, "right": 1},
    {"top": 2, "right": 1},
    {"top": 2, "bottom": 2, "left": 2, "right": 2},
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
MISFITS = (  # changes after which a problem may not fit
    *(dict.fromkeys(axes, taps) for axes in (("R",), ("S",), ("R", "S")) for taps in (1, 2, 4, 5, 6, 7, 9, 12)),
    *(
        dict.fromkeys(axes, step)
        for name in ("stride", "dilation")
        for axes in ((f"{name}_h",), (f"{name}_w",), (f"{name}_h", f"{name}_w"))
        for step in (2, 3, 4, 5, 6, 7, 9)
    ),
    *({"groups": groups} for groups in (2, 3, 4, 5, 7, 8, 16)),
    *({"layout": "NHWC"},) * 5,
    *({"format": format} for format in ("bfloat16", "float16", "tf32", "float8_e4m3")),
)


NO_OBSTACLE = "- Any sizes, any padding and a rotated filter are no obstacle: the rule must not ask for them."


def make_launch(rng, count):
    """Ask for the problems of `CASES` (count 0), or for this many random ones."""
    calls = [(replace(PLAIN, **case), "float32") for case in CASES] if count == 0 else []
    calls += [(PLAIN, "bfloat16"), (PLAIN, "float16")] if count == 0 else []
    calls += [draw_problem(rng) for _ in range(count)]

    def find_mistake(answers):
        for (problem, format), answer in zip(calls, answers, strict=True):
            why = find_misfit(problem, format)
            head = f"For {problem} in {format} the answer is {answer!r}"
            if answer is None:
                return f"{head}: begin the line of the result with `return`."
            if answer is not True and answer is not False:
                return f"{head}: return True or False."
            if answer and why:
                return f"{head}, but it does not apply: {why}.\n- Let the rule test {find_field(why)}, too."
            if not answer and not why:
                return f"{head}, but it does apply: the step computes it.\n{NO_OBSTACLE}"
        return ""

    label = f"{len(calls)} problems" if count else "problems that differ in one thing each"
    return Questions(label, tuple(calls), find_mistake)


def find_misfit(problem, format):
    """Say why the package's step does not compute a problem; "" if it does."""
    step = ladder("winograd").step("f4x4")
    if format_named(format) not in step.formats:
        return f"this step takes {' or '.join(map(str, step.formats))}, and the arrays hold {format}"
    return problem.misfit(step.module.SUPPORTED).rstrip(".")


def find_field(why):
    """Return what a rule must test so that it finds a misfit."""
    return f"`problem.{found[1]}`" if (found := re.search(r"takes (\w+) = ", why)) else "`format`"


def draw_problem(rng) -> tuple[Forward, str]:
    """Draw a problem and its format, with up to two misfits."""
    choices: dict[str, Any] = {"R": 3, "S": 3, "groups": 1, "flipped": bool(rng.integers(2)), "format": "float32"}
    for _ in range(rng.choice((0, 0, 1, 1, 1, 2))):
        choices |= MISFITS[rng.integers(len(MISFITS))]
    sizes: dict[str, Any] = {name: int(rng.integers(1, 300 if rng.integers(4) == 0 else 9)) for name in ("N", "C", "K")}
    sizes |= {name: choices["groups"] * sizes[name] for name in ("C", "K")}
    if choices["groups"] > 1 and rng.integers(2):
        sizes["C"] = choices["groups"]  # as in depthwise convolutions
    for side, taps, dilation, pads in (
        ("H", "R", "dilation_h", ("top", "bottom")),
        ("W", "S", "dilation_w", ("left", "right")),
    ):
        extent = choices.get(dilation, 1) * (choices[taps] - 1)
        sizes |= {pad: int(rng.integers(0, extent + 1)) for pad in pads}
        sizes[side] = extent + int(rng.integers(1, 600 if rng.integers(4) == 0 else 30))
    format = choices.pop("format")
    return Forward(**choices, **sizes), format


EXERCISE = Exercise(
    title="Does it apply?",
    task="Say whether Winograd's F(4x4, 3x3) computes a problem: return True or False. "
    "The rule in the cell returns False for some problems that the kernel computes, and True for some that it does "
    "not.",
    points=2,
    function="applies",
    make_launch=make_launch,
    sizes=((0,),),
    random_sizes=((range(300, 400),), (Above(400),)),
    machine="python",
)
