"""The picture on a student's page: the accesses of one block of their own run, at the access that goes wrong."""

import numpy as np

from labkit.checking.failing_access import FailingAccess, touches
from labkit.trace import Trace

COLOURS = "What warp {} touches is dark orange, what the other warps of the block touch is light orange."
SIZE_INCHES = 6.5, 3.2
MAX_CHARACTERS = 70_000
MAX_ACCESSES = 20_000  # of warps in the recorded blocks: about a second to read


def draw_picture(trace: Trace, line: int | None, access: FailingAccess | None = None) -> tuple[str, str]:
    """Draw a run as SVG and in words; both are "" if it is too large or has nothing to show.

    Parameters
    ----------
    line
        That of the verdict: its first step is drawn if no access is known.
    access
        The access that goes wrong.
    """
    if len(trace.samples.site) > MAX_ACCESSES:
        return "", ""
    from labkit.views.base import strip_marks  # these import matplotlib: only for a picture
    from labkit.views.tiling import tiling

    if access and access.thread.block not in trace.samples.blocks:
        access = None
    warp = access.warp if access else 0
    try:
        view = tiling(trace, block=access and access.thread.block, warp=warp)
        step, is_exact = _find_step(trace, view, line, access)
        told = f"{view.title}. {view.data['say'][step]} {COLOURS.format(warp)}"
        if access and is_exact:
            view.data["marked"] = [access.array, access.element]
            told += f" {_tell_access(trace, access)}"
        picture = view.to_svg(step, SIZE_INCHES)
    except Exception:  # a view that fails on a student's kernel is no part of the verdict
        return "", ""
    if not view.data["table"]["rows"] or len(picture) > MAX_CHARACTERS:
        return "", ""
    return picture, strip_marks(told)


def _find_step(trace, view, line, access) -> tuple[int, bool]:
    """Return the step of an access, and whether it is that one: else it is the first of its warp or line."""
    from labkit.views.base import unpack

    samples, offsets = trace.samples, unpack(view.data["offsets"])
    of_block = samples.block == (samples.blocks.index(access.thread.block) if access else 0)
    at_line = samples.line[of_block] == (access.line if access else line)
    if access:
        of_warp = at_line & (samples.warp[of_block] == access.warp)
        of_element = np.zeros_like(of_warp)
        if access.element is not None:
            of_element = of_warp & touches(trace, access.array, access.element)[of_block].any(axis=1)
        candidates = [of_element, of_warp, at_line]
    else:
        candidates = [at_line]
    for number, rows in enumerate(candidates):
        step = int(np.searchsorted(offsets, np.argmax(rows), side="right")) - 1
        if rows.any() and step < len(offsets) - 1:
            return step, access is not None and number == 0
    return 0, False


def _tell_access(trace, access):
    from labkit.views.wording import element_name

    thread = access.thread.named(trace.grid, trace.block)
    return f"The frame marks {element_name(trace.array(access.array), access.element)}, of {thread}."
