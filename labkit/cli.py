"""The command line: `labkit doctor | lab | build | bench | tune | grade`."""

import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Annotated

import typer

from labkit import places

TABLES = {m.name for m in iter_modules([str(places.PACKAGE / "bench")]) if not m.name.startswith("_")}


def benches() -> list[str]:
    """What can be measured: an operation needs no table of its own."""
    return sorted({*TABLES, *places.operations()})


app = typer.Typer(
    help="An interactive GPU textbook and lab.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.command()
def doctor():
    """Show what works on this machine, and what to do about the rest."""
    from labkit import doctor

    raise typer.Exit(0 if doctor.run() else 1)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def lab(
    context: typer.Context,
    workspace: Annotated[Path, typer.Option(help="Folder of your own copy of the book.")] = Path("workspace"),
):
    """Open the book in JupyterLab, on your own copy; other arguments go to JupyterLab."""
    from labkit.book.workspace import open_lab

    _check_folder(workspace)
    open_lab(workspace, tuple(context.args))


@app.command()
def build(
    chapters: Annotated[list[str] | None, typer.Argument(help='Chapters by number ("03"); all if none.')] = None,
    check: Annotated[bool, typer.Option("--check", help="Change nothing; fail if a notebook is stale.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Run every chapter anew.")] = False,
):
    """Build the notebooks from notebooks/source."""
    from labkit.book.build import SourceError
    from labkit.book.build import build as build_book

    known = sorted(path.stem for path in places.folder("notebooks").glob("source/[0-9][0-9]-*.md"))
    for chapter in chapters or ():
        if not any(name.startswith(chapter) for name in known):
            _fail(f"there is no chapter {chapter!r}; there are {', '.join(name[:2] for name in known)}")
    try:
        changed = build_book(only=tuple(chapters or ()), check=check, force=force)
    except SourceError as error:
        _fail(error)
    for name in changed:
        print(f"{'stale' if check else 'built'}: {name}")
    if not changed:
        print("every notebook is up to date")
    if check and changed:
        _fail("run `python -m labkit build` and commit what it changes")


@app.command()
def bench(
    operation: Annotated[str, typer.Argument(help=f"What to measure: {', '.join(benches())}.")],
    record: Annotated[bool, typer.Option("--record", help="Store the figures in labkit/results.")] = False,
    out: Annotated[Path | None, typer.Option(help="Store them in this folder instead.")] = None,
):
    """Measure an operation beside its rivals, in one run."""
    from labkit.bench import _harness

    if operation not in benches():
        _fail(f"there is no bench {operation!r}; there are {', '.join(benches())}")
    if out:
        _check_folder(out)
    if operation in TABLES:
        import_module(f"labkit.bench.{operation}").main(record, out)
    else:
        _harness.run(_harness.of_operation(operation), record, out)


@app.command()
def tune(
    operation: Annotated[str, typer.Argument(help="What to tune: gemm.")],
    sizes: Annotated[tuple[int, int, int], typer.Argument(metavar="M N K", help="Sides of the product.")],
    format: Annotated[str, typer.Option(help="float32, tf32, bfloat16, float16 or float8_e4m3.")] = "bfloat16",
    transpose_a: Annotated[bool, typer.Option("--transpose-a", help="A.T in place of A.")] = False,
    transpose_b: Annotated[bool, typer.Option("--transpose-b", help="B.T in place of B.")] = False,
    batches: Annotated[int, typer.Option(help="How many such products at once.")] = 1,
):
    """Time the ways to compute a product on this GPU; from then on the fastest is used."""
    from labkit import gemm

    if operation != "gemm":
        _fail(f"there is nothing to tune for {operation!r}; there is gemm")
    try:
        times_ms = gemm.tune(*sizes, format, transpose_a=transpose_a, transpose_b=transpose_b, batches=batches)
    except (ValueError, RuntimeError) as error:
        _fail(error)
    for candidate, time_ms in times_ms.items():
        print(f"{time_ms:10.4f} ms  {candidate}")


@app.command()
def grade(
    paths: Annotated[list[Path], typer.Argument(help="Notebooks, or folders of them.")],
    out: Annotated[Path, typer.Option(help="Folder for the JUnit XML, CSV and JSON.")] = Path("grades"),
    seed: Annotated[
        int | None, typer.Option(help="Draws the sizes of the checks: others each time if left out.")
    ] = None,
):
    """Grade notebooks: the exercises of each, from their source, with points and reasons."""
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    from labkit.grading.grade import grade
    from labkit.grading.report import totals, write_reports
    from labkit.grading.submission import book_solutions

    absent = [str(path) for path in paths if not path.exists()]
    if absent:
        _fail(f"there is no {', '.join(absent)}; give notebooks or folders of them")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        _fail(f"the grades cannot be written to {out}: {error.strerror}; give another folder with --out")
    for folder in dict.fromkeys(solution.parent for solution in book_solutions(paths)):
        print(f"Left out: the book's own solutions in {folder}")
    grades = grade(paths, seed=seed)
    if not grades:
        _fail(f"there is no notebook in {', '.join(map(str, paths))}; give notebooks or folders of them")
    table = Table(Column("notebook", overflow="fold"), "exercise", "points", "why")
    for row in grades:
        table.add_row(Text(row.submission), row.exercise, f"{row.points}/{row.out_of}", Text(row.message))
    console = Console()
    console.print(table)
    console.print(f"The sizes were drawn with --seed {grades[0].seed}.")
    for name, (points, out_of) in totals(grades).items():
        console.print(Text(f"{name}: {points} of {out_of} points"))
    console.print(Text(f"Wrote {', '.join(map(str, write_reports(grades, out)))}"))


def _check_folder(path):
    """Refuse a path that is, or goes through, a file."""
    there = next((place for place in (path, *path.parents) if place.exists()), path)
    if there.is_file():
        _fail(f"{there} is a file; give a folder")


def _fail(message):
    print(message, file=sys.stderr)
    raise typer.Exit(1)


if __name__ == "__main__":
    app(prog_name="python -m labkit")
