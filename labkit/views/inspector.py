"""The thread inspector: the source, and one thread's variables statement by statement."""

from labkit.trace import Trace
from labkit.views.base import COLOURS, View, heading, table
from labkit.views.wording import check_trace, value_text

MOST_STEPS = 5000


def inspector(trace: Trace) -> View:
    """Follow the thread that `simulate(..., inspect=(block, thread))` watched.

    Parameters
    ----------
    trace
        A run that inspected a thread.
    """
    check_trace("inspector", trace)
    if not trace.steps:
        raise ValueError("This trace inspected no thread; simulate with inspect=(block, thread) to follow one.")
    steps = trace.steps[:MOST_STEPS]
    before, changes, says = {}, [], []
    for number, step in enumerate(steps, 1):
        now = {name: value_text(value) for name, value in step.variables.items()}
        changed = {name: value for name, value in now.items() if before.get(name) != value}
        changes.append(changed)
        says.append(_sentence(number, step.line, changed, before))
        before = now
    if len(trace.steps) > len(steps):
        says[-1] += f" The view ends here, {len(trace.steps) - len(steps)} statements before the thread does."
    source = trace.source.rstrip("\n").split("\n")
    rows = [[number, step.line] for number, step in enumerate(steps, 1)]
    data = {
        "say": says,
        "source": source,
        "first": trace.first_line,
        "lines": [step.line for step in steps],
        "changes": changes,
        "table": table(["step", "line"], rows, by_step=True),
    }
    return View("inspector", f"Inspector: one thread of `{trace.kernel}`", data, draw_still)


def _sentence(number, line, changed, before):
    if not changed:
        return f"Statement {number}, line {line}: no variable of the thread changes."
    verbs = {name: "becomes" if name in before else "is" for name in changed}
    parts = [f"`{name}` {verbs[name]} {value}" for name, value in list(changed.items())[:4]]
    return f"Statement {number}, line {line}: {', '.join(parts)}."


def draw_still(figure, data, step):
    """Draw the source with the current line marked, and the variables after it."""
    variables = {}
    for change in data["changes"][: step + 1]:
        variables.update(change)
    rows = max(len(data["source"]), len(variables)) + 2
    figure.set_size_inches(9.5, 0.2 * rows + 0.4)
    axes = figure.add_subplot()
    axes.set_axis_off()
    axes.set(xlim=(0, 100), ylim=(rows, 0))
    axes.set_title(heading(data, step), fontsize=9, loc="left", color=COLOURS["fg"])

    def write(x, row, text, now):
        colour = COLOURS["hot" if now else "fg"]
        axes.text(x, row, text, family="monospace", fontsize=7.5, color=colour, va="center")

    for row, text in enumerate(data["source"], 1):
        line = data["first"] + row - 1
        write(0, row, f"{line:4d}  {text}", line == data["lines"][step])
    for row, (name, value) in enumerate(variables.items(), 1):
        write(72, row, f"{name} = {value}", name in data["changes"][step])
