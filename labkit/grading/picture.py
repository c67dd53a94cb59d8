"""The picture on a student's page: what a block of their own run touches, at the line that the verdict names."""

from labkit.trace import Trace

COLOURS = "What warp 0 touches is dark orange, what the other warps of the block touch is light orange."
MAX_CHARACTERS = 70_000
MAX_ACCESSES = 20_000  # of warps, in the blocks that a trace records: about a second to read


def draw_picture(trace: Trace, line: int | None) -> tuple[str, str]:
    """A run as SVG and in words; both are empty where it is too large to draw, or has nothing to show."""
    if len(trace.samples.site) > MAX_ACCESSES:
        return "", ""
    from labkit.views.base import plain  # these bring matplotlib: not before a picture is wanted
    from labkit.views.tiling import tiling

    try:
        view = tiling(trace, block=_choose_block(trace, line))
        rows = view.data["table"]["rows"]
        step = next((number for number, (_, its_line, *_) in enumerate(rows) if its_line == line), 0)
        picture = view.to_svg(step)
    except Exception:  # whatever a student's kernel does to a view, it is no part of the verdict
        return "", ""
    if not rows or len(picture) > MAX_CHARACTERS:
        return "", ""
    return picture, plain(f"{view.title}. {view.data['say'][step]} {COLOURS}")


def _choose_block(trace, line):
    """The recorded block that an error at the line speaks of, else the first that is recorded."""
    named = [thread.block for finding in trace.errors if finding.line == line for thread in finding.threads]
    return next((block for block in named if block in trace.samples.blocks), None)
