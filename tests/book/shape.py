"""The shape of a chapter: what a reader meets on the way through its source, counted."""

import ast
import re
from dataclasses import dataclass
from pathlib import Path

import jupytext

# Pictures that move when a reader steps, drags or chooses; the others stand still: charts, listings, a page.
MOVING = set(
    "attention_row banks butterflies cache cached_tiles chained_fragments cluster collapse "
    "compare_outputs descriptor divergence dq_sums filtering format_map fragments grid_to_lane inspector io_curve "
    "key_order ladder landscape latency_hiding lowering mbarriers memory memory_order number_line "
    "occupancy outputs passes pipeline pixel_rows playground ragged register_file rescaled_output "
    "rescaling rotation schedule score_tiles sectors shuffles spectral_product spectrum split_cache "
    "suitability swizzle terms tile_sizes tile_transform tiling transposing walks warp_loads "
    "warp_timeline waves whole_ladder window winners workspace_limits wraparound".split()
)
CHARTS = {
    "agreement",
    "attention_errors",
    "ceilings",
    "curves",
    "findings",
    "generations",
    "intensities",
    "lowered_sizes",
    "misses",
    "records",
    "relative",
    "roofline",
    "shape_ratios",
    "warp_states",
    "student_page",
    "tile_errors",
    "timeline",
    "variance_errors",
    "verdicts",
}
END = re.compile(r"^## Exercises", re.M)
FOLDED = re.compile(r"<details>.*?</details>", re.S)
TABLE_OF_TEXT = re.compile(r"^\|[ :|-]+\|$", re.M)


@dataclass(frozen=True)
class Shape:
    """Counts of a chapter up to its exercises; folded text is left out.

    Attributes
    ----------
    words_before_moving
        Words before the first picture that moves.
    words_before_picture
        Words before the first picture, moving or not.
    words_without
        Words of the longest stretch without a picture.
    core_words
        Words in all.
    tables
        Tables in the text, and cells that print a table or lines in a loop; folded tables are left out.
    record_lines, code_lines
        Lines of code that fetch or format records, and lines of code.
    pictures, playgrounds
        Pictures of all kinds, and those among them that run the reader's own kernel.
    """

    words_before_moving: int
    words_before_picture: int
    words_without: int
    core_words: int
    tables: int
    record_lines: int
    code_lines: int
    pictures: int
    playgrounds: int

    @property
    def minutes(self) -> float:
        """Time to read it: 200 words or 10 lines of code a minute, 1.5 for a picture, 5 for a playground's tasks."""
        return self.core_words / 200 + self.code_lines / 10 + 1.5 * self.pictures + 5 * self.playgrounds


def read_shape(path: Path) -> Shape:
    """Count a chapter's source."""
    words, stretches, before_moving, before_picture = 0, [0], None, None
    tables = record_lines = code_lines = playgrounds = 0
    pictures, records = {}, set()  # variables that hold pictures, by what kind; variables that hold records
    for cell in jupytext.reads(path.read_text(encoding="utf-8"), fmt="md:myst").cells:
        if cell.cell_type == "markdown":
            text, *exercises = END.split(FOLDED.sub("", cell.source), maxsplit=1)
            count = len(text.split())
            words += count
            stretches[-1] += count
            tables += len(TABLE_OF_TEXT.findall(text))
            if exercises:
                break
            continue
        tree = ast.parse(cell.source)
        kind = _picture(tree, pictures)
        playgrounds += "playground(" in cell.source
        if kind:
            stretches.append(0)
        if kind and before_picture is None:
            before_picture = words
        if kind == "moving" and before_moving is None:
            before_moving = words
        if {"setup", "gpu"} & set(cell.metadata.get("tags", ())):
            continue
        lines = [line for line in cell.source.splitlines() if line.strip()]
        code_lines += len(lines)
        record_lines += _record_lines(tree, records)
        tables += _prints_a_table(tree)
    return Shape(
        words_before_moving=words if before_moving is None else before_moving,
        words_before_picture=words if before_picture is None else before_picture,
        words_without=max(stretches),
        core_words=words,
        tables=tables,
        record_lines=record_lines,
        code_lines=code_lines,
        pictures=len(stretches) - 1,
        playgrounds=playgrounds,
    )


def _picture(tree, pictures) -> str | None:
    """Return the kind of picture that a cell shows: "moving", "chart" or none. A `predict` is none."""
    last = tree.body[-1] if tree.body else None
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            pictures[statement.targets[0].id] = _kind(statement.value)
    if not isinstance(last, ast.Expr):
        return None
    return pictures.get(last.value.id) if isinstance(last.value, ast.Name) else _kind(last.value)


def _kind(value) -> str | None:
    for call in ast.walk(value):
        if isinstance(call, ast.Call) and (name := _name(call.func)) in MOVING | CHARTS:
            return "moving" if name in MOVING else "chart"
    return None


def _name(function) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _record_lines(tree, records) -> int:
    """Count the lines of statements that read records, themselves or through a variable; pictures of them are free."""
    lines = set()
    for statement in tree.body:
        names = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
        if not names & (records | {"results", "standings"}) or _kind(statement):
            continue
        lines |= set(range(statement.lineno, (statement.end_lineno or statement.lineno) + 1))
        for node in ast.walk(statement):
            if isinstance(node, ast.Assign | ast.For):
                target = node.target if isinstance(node, ast.For) else node.targets[0]
                records |= {part.id for part in ast.walk(target) if isinstance(part, ast.Name)}
    return len(lines)


def _prints_a_table(tree) -> bool:
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and not _is_folded(node)]
    looped = [node for loop in ast.walk(tree) if isinstance(loop, ast.For) for node in ast.walk(loop)]
    prints = [node for node in looped if isinstance(node, ast.Call) and _name(node.func) == "print"]
    return any(_name(call.func) in ("Table", "table") for call in calls) or bool(prints)


def _is_folded(call) -> bool:
    return any(keyword.arg == "folded" for keyword in call.keywords)
