"""The costs that a step of batch norm states, and those that a run of it has."""

import re


def stated(step) -> dict[str, str]:
    """The costs that a step states, by what they are of."""
    lines = re.findall(r"^    (\S+) +(\S.*?)(?:[:;].*)?$", step.module.__doc__, re.MULTILINE)
    return {what: number for number, what in lines}


def passes(trace, problem) -> float:
    """How often a launch reads or writes all values of an array of images."""
    image_bytes = sum(
        result.bytes for result in trace.sites if result.site.array.removesuffix("_map") in problem.image_arrays
    )
    return image_bytes / (problem.C * problem.values * 4)


def check_passes(step, problem) -> None:
    """A step makes as many passes over memory, by each kernel and in all, as it says."""
    traces = step.simulate(*problem.operands()).traces
    costs, result = stated(step), {trace.kernel: passes(trace, problem) for trace in traces}
    assert {kernel: float(costs[kernel]) for kernel in result} == result
    assert float(costs["passes in all"]) == sum(result.values())
