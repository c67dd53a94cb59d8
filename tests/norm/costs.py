"""The costs that a step of batch norm states, and those that a run of it has."""

import re


def stated(step) -> dict[str, str]:
    """The costs that a step states, by what they are of."""
    lines = re.findall(r"^    (\S+) +(\S.*?)(?:[:;].*)?$", step.module.__doc__, re.MULTILINE)
    return {what: number for number, what in lines}


def passes(trace, problem) -> float:
    """How often a launch reads or writes all values of an array of images."""
    of_images = sum(
        found.bytes for found in trace.sites if found.site.array.removesuffix("_map") in problem.image_arrays
    )
    return of_images / (problem.C * problem.values * 4)


def check_passes(step, problem) -> None:
    """A step makes as many passes over memory, by each kernel and in all, as it says."""
    traces = step.simulate(*problem.operands()).traces
    costs, found = stated(step), {trace.kernel: passes(trace, problem) for trace in traces}
    assert {kernel: float(costs[kernel]) for kernel in found} == found
    assert float(costs["passes in all"]) == sum(found.values())
