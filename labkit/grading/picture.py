"""The picture on a student's page: the accesses of one block of their own run, at the line of the verdict."""

from labkit.trace import Trace

COLOURS = "What warp 0 touches is dark orange, what the other warps of the block touch is light orange."
MAX_CHARACTERS = 70_000
MAX_ACCESSES = 20_000  # of warps in the recorded blocks: about a second to read


def draw_picture(trace: Trace, line: int | None) -> tuple[str, str]:
    """Draw a run as SVG and in words; both are "" if it is too large or has nothing to show."""
    if len(trace.samples.site) > MAX_ACCESSES:
        return "", ""
    from labkit.views.base import strip_marks  # these import matplotlib: only for a picture
    from labkit.views.tiling import tiling

    try:
        view = tiling(trace, block=_choose_block(trace, line))
        rows = view.data["table"]["rows"]
        step = next((number for number, (_, its_line, *_) in enumerate(rows) if its_line == line), 0)
        picture = view.to_svg(step)
    except Exception:  # a view that fails on a student's kernel is no part of the verdict
        return "", ""
    if not rows or len(picture) > MAX_CHARACTERS:
        return "", ""
    return picture, strip_marks(f"{view.title}. {view.data['say'][step]} {COLOURS}")


def _choose_block(trace, line):
    """Choose the recorded block of an error at the line, else the first recorded one."""
    named = [thread.block for finding in trace.errors if finding.line == line for thread in finding.threads]
    return next((block for block in named if block in trace.samples.blocks), None)
