"""The command line, `labkit COMMAND`: for learners, for teachers (from `prove` to `grade`), and for the book itself."""

import errno
import os
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Annotated, NoReturn

import typer

from labkit import __version__, places
from labkit.bench import _tuning
from labkit.setup import extras

INCOMPLETE = 3  # exit status: all is done that can be, and something was not fetched or graded
TABLES = {m.name for m in iter_modules([str(places.PACKAGE / "bench")]) if not m.name.startswith("_")}


def benches() -> list[str]:
    """Return the names of all benches: tables and operations, which need no table."""
    return sorted({*TABLES, *places.operations()})


IS_INSTALLED_COMMAND = Path(sys.argv[0]).stem == "labkit"  # and not `python -m labkit`, which no shell can complete
OwnCourse = Annotated[
    Path | None,
    typer.Option(
        "--course",
        metavar="DIR",
        envvar=places.OWN_COURSE,
        help="Your own chapters and exercises, which `prove` tests.",
    ),
]
app = typer.Typer(
    help="An interactive GPU textbook and lab.",
    no_args_is_help=True,
    add_completion=IS_INSTALLED_COMMAND,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(is_wanted: bool):
    if is_wanted:
        print(f"labkit {__version__}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
):
    """An interactive GPU textbook and lab."""
    if context.invoked_subcommand != "run":  # which runs the user's own program
        import labkit.grading.fast_start  # noqa: F401


def main():
    """Run the command line; a missing package, or a folder that cannot be written, is reported in one sentence."""
    try:
        app(prog_name=None if IS_INSTALLED_COMMAND else "python -m labkit")
    except ModuleNotFoundError as error:
        if not (sentence := extras.describe_missing_package(error)):
            raise
        sys.exit(sentence)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        sys.exit(f"{error.filename} cannot be written ({error.strerror}): choose another folder")


@app.command()
def doctor(
    clear_kernels: Annotated[
        bool, typer.Option("--clear-kernels", help="Remove the compiled kernels that are kept on disk.")
    ] = False,
):
    """Show what works on this machine, and what to do about the rest."""
    from labkit.setup import doctor

    if clear_kernels:
        from labkit.cuda import kernel_folder
        from labkit.table import count_text

        print(f"removed {count_text(kernel_folder.clear(), 'compiled kernel')} from {kernel_folder.folder()}")
    raise typer.Exit(0 if doctor.run() else 1)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def lab(
    context: typer.Context,
    workspace: Annotated[Path, typer.Option(help="Folder of your own copy of the book.")] = Path("workspace"),
):
    """Open the book in JupyterLab, on your own copy; other arguments, which begin with a dash, go to JupyterLab."""
    if context.args and not context.args[0].startswith("-"):
        _fail(f"{context.args[0]!r} is not an option: open a chapter in JupyterLab's file list, or pass --workspace")
    from labkit.book.workspace import describe_unknown_option, open_lab, serve
    from labkit.course.manifest import NOTEBOOKS, current

    if sentence := describe_unknown_option(tuple(context.args)):
        _fail(sentence)
    if released := current():
        serve(released[1] / NOTEBOOKS, tuple(context.args))
        return
    _check_folder(workspace)
    open_lab(workspace, tuple(context.args))


@app.command()
def build(
    chapters: Annotated[
        list[str] | None, typer.Argument(help="Chapters, such as 03 or tiled-gemm; all if none.")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Change nothing; fail if a notebook is stale.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Run every chapter anew.")] = False,
):
    """Build the notebooks from notebooks/source."""
    from labkit.book.build import build as build_book
    from labkit.book.contents import SourceError, read_contents

    try:
        book = read_contents(places.folder("notebooks")).chapters
        for name in chapters or ():
            if not any(name in (chapter.number, chapter.slug) for chapter in book):
                _fail(f"there is no chapter {name!r}; there are {', '.join(chapter.number for chapter in book)}")
        only = tuple(chapter.slug for chapter in book if {chapter.number, chapter.slug} & {*(chapters or ())})
        changed = build_book(only=only, check=check, force=force)
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
    """Measure an operation and its baselines in one run."""
    from labkit import results
    from labkit.bench import _harness

    if operation not in benches():
        _fail(f"there is no bench {operation!r}; there are {', '.join(benches())}")
    if out or record:
        _check_folder(out or results.FOLDER)
    if operation in TABLES:
        import_module(f"labkit.bench.{operation}").main(record, out)
    else:
        _harness.run(_harness.default_benchmark(operation), record, out)


@app.command(context_settings={"allow_interspersed_args": False, "ignore_unknown_options": True})
def run(
    program: Annotated[
        list[str], typer.Argument(metavar="SCRIPT", help="A script, followed by its own options and arguments.")
    ],
    module: Annotated[
        bool, typer.Option("-m", metavar=" ", help="SCRIPT is the name of a module, as in `python -m`.")
    ] = False,
    explore: Annotated[
        bool,
        typer.Option(
            "--explore",
            metavar=" ",
            help="Run each launch in several orders of its blocks and warps, and report results that depend on it.",
        ),
    ] = False,
    time_limit: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="SECONDS",
            help="Check each launch for this time, then run its other blocks unchecked, so that results stay complete.",
        ),
    ] = None,
    json: Annotated[Path | None, typer.Option(metavar="FILE", help="Write findings and counters as JSON.")] = None,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the kernels to this file as JUnit tests.")
    ] = None,
    github: Annotated[
        bool, typer.Option("--github", metavar=" ", help="Also print findings as annotations of a GitHub workflow.")
    ] = False,
):
    """Run a program that uses numba.cuda on the simulator, and report the faults of its kernels.

    Options go before SCRIPT. The exit status is the program's own; if that is 0 and a kernel has an error, it is 1.
    """
    from labkit.running.command import run_and_report

    if program[0].startswith("-"):
        _fail(f"there is no option {program[0]}; `labkit run --help` lists them; options of a script go after its name")
    if not module and not Path(program[0]).is_file():
        _fail(f"there is no file {program[0]}; give a script, or `-m` and the name of a module")
    for file in filter(None, (json, junit)):
        if not file.absolute().parent.is_dir():
            _fail(f"there is no folder {file.parent} for the report {file.name}: make it, or give another path")
    for option in [word for word in program[1:] if word.partition("=")[0] in ("--explore", "--time-limit")]:
        note = f"labkit: {option} comes after {program[0]}, which gets it; put options of `labkit run` before it"
        print(note, file=sys.stderr)
    reports = {"json": json, "junit": junit, "github": github}
    raise typer.Exit(run_and_report(program, is_module=module, explore=explore, time_limit_s=time_limit, **reports))


NamedCall = Annotated[str, typer.Argument(metavar="CALL", help=f"One of gemm, {', '.join(_tuning.PROBLEMS)}.")]
Sizes = Annotated[
    list[str],
    typer.Argument(metavar="SIZES", help="Of gemm M N K; else those of the problem, in order or as NAME=VALUE."),
]
FormatName = Annotated[str, typer.Option(help="A number format, such as bfloat16, float32 or tf32.")]
TransposeA = Annotated[bool, typer.Option("--transpose-a", help="Of gemm: A.T in place of A.")]
TransposeB = Annotated[bool, typer.Option("--transpose-b", help="Of gemm: B.T in place of B.")]
Batches = Annotated[int, typer.Option(help="Of gemm: how many such products at once.")]


@app.command()
def tune(
    call: NamedCall,
    sizes: Sizes,
    format: FormatName = "bfloat16",
    transpose_a: TransposeA = False,
    transpose_b: TransposeB = False,
    batches: Batches = 1,
):
    """Time the ways to compute a call on this GPU; from then on the fastest is used."""
    gemm_options = {"transpose_a": transpose_a, "transpose_b": transpose_b, "batches": batches}
    try:
        times_ms = _tuning.tune(call, sizes, format, **gemm_options)
    except (TypeError, ValueError, RuntimeError) as error:
        _fail(error)
    for candidate, time_ms in times_ms.items():
        print(f"{time_ms:10.4f} ms  {candidate}")


@app.command()
def warm(
    call: NamedCall,
    sizes: Sizes,
    format: FormatName = "bfloat16",
    transpose_a: TransposeA = False,
    transpose_b: TransposeB = False,
    batches: Batches = 1,
):
    """Compile the kernels that a call takes for such sizes, so that the first call of a program need not."""
    from labkit.cuda import kernel_folder
    from labkit.table import count_text

    before = {*kernel_folder.kernels()}
    try:
        _tuning.warm(call, sizes, format, transpose_a=transpose_a, transpose_b=transpose_b, batches=batches)
    except (TypeError, ValueError, RuntimeError) as error:
        _fail(error)
    compiled = len({*kernel_folder.kernels()} - before)
    print(f"compiled {count_text(compiled, 'kernel')}; all that the call needs are in {kernel_folder.folder()}")


@app.command()
def release(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new folder, or an empty clone.")],
    chapters: Annotated[str, typer.Option(help="Chapters, such as 03 or 02-05 or 01,roofline.")] = "00-90",
    assignment: Annotated[str, typer.Option(help="Name of the assignment, such as hw2.")] = "book",
    work_log: Annotated[
        bool, typer.Option("--work-log", help="Keep the outcome of each check; `submit` hands the log in.")
    ] = False,
    own: OwnCourse = None,
):
    """Write what students get into a folder: blank chapters, labkit, no solutions."""
    from labkit.course.manifest import CourseError
    from labkit.course.release import release

    _use_course(own)
    try:
        course = release(folder, chapters, assignment, work_log=work_log)
    except CourseError as error:
        _fail(error)
    numbers = ", ".join(name[:2] for name in course.chapters)
    print(f"Released {course.assignment} to {folder}: chapters {numbers}; points: {course.out_of}.")
    print("Next: commit and push it (git init, git add ., git commit), and make it a template repository.")


@app.command()
def prove(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder with your own chapters and exercises.")],
    new: Annotated[
        bool, typer.Option("--new", help="Write an example to this folder first, which must be new.")
    ] = False,
):
    """Prove the checks of your own exercises, by solutions, wrong answers and mutants. Exit status 1: a fault."""
    from rich.console import Console
    from rich.text import Text

    from labkit.course.proving import prove_own_course, write_example
    from labkit.exercises import OwnCourseError

    proofs = []
    try:
        if new:
            write_example(folder)
        _use_course(folder)
        for proof in prove_own_course():
            proofs.append(proof)
            Console(soft_wrap=True).print(Text(str(proof)))
    except OwnCourseError as error:
        _fail(error)
    if faults := sum(len(proof.faults) for proof in proofs):
        _fail(f"faults: {faults}; repair them and run this again")
    print(f"No fault was found. Next: labkit release DIR --course {folder}")


@app.command()
def check():
    """Say how the exercises of this release stand."""
    _check_course(*_released())


@app.command()
def submit():
    """Check the exercises of this release, then commit and push the notebooks."""
    from labkit.course.manifest import CourseError
    from labkit.course.submit import require_work, submit

    course, folder = _released()
    try:
        require_work(folder)
        rows = _check_course(course, folder)
        solved = [row.exercise for row in rows if row.points == row.out_of]
        for line in submit(course, folder, solved, sum(row.points for row in rows)):
            print(line)
    except CourseError as error:
        _fail(error)


@app.command()
def collect(
    roster: Annotated[Path, typer.Argument(help="CSV with the columns student and repository (an address or path).")],
    out: Annotated[Path, typer.Option(help="Folder that receives a folder per student.")] = Path("submissions"),
    before: Annotated[
        str | None, typer.Option(help="Take the last commit before this time, as `grade --deadline` has it.")
    ] = None,
    deadline: Annotated[
        str | None,
        typer.Option(help="Take the last commit before this time and a later one: the better answer counts."),
    ] = None,
):
    """Fetch the notebooks of a class, a folder per student, for `grade`. Exit status 3: some were not fetched."""
    from rich.console import Console
    from rich.text import Text

    from labkit.course.collect import collect
    from labkit.course.manifest import CourseError

    _check_folder(out)
    try:
        rows = []
        for row in collect(roster, out, *(_time(time) if time else None for time in (before, deadline))):
            rows.append(row)
            Console(soft_wrap=True).print(Text(str(row)))
    except CourseError as error:
        _fail(error)
    if missing := [row.student for row in rows if not row.fetched]:
        print(f"{len(missing)} of {len(rows)} were not fetched: {', '.join(missing)}")
        raise typer.Exit(INCOMPLETE)


@app.command()
def grade(
    paths: Annotated[list[Path], typer.Argument(help="A folder with a folder for each student, or one path for each.")],
    out: Annotated[Path, typer.Option(help="Folder for the reports; an interrupted run goes on.")] = Path("grades"),
    seed: Annotated[
        int | None, typer.Option(help="Draws the sizes of the checks; if left out, that of the run before, or any.")
    ] = None,
    roster: Annotated[Path | None, typer.Option(help="CSV with a column `student`: who is missing has a row.")] = None,
    assignment: Annotated[Path | None, typer.Option(help="The `course.json` of a release: what counts.")] = None,
    collected: Annotated[
        Path | None,
        typer.Option(help="The `collected.json` of a collection: commit times; if left out, that of a single path."),
    ] = None,
    deadline: Annotated[
        str | None, typer.Option(help="When the last commit is due: 2026-11-30T23:59+01:00, or a day, until its end.")
    ] = None,
    late: Annotated[float, typer.Option(help="Per cent of the points that each day begun after it costs.")] = 100,
    late_policy: Annotated[
        str, typer.Option(help="What counts of a commit in time and a late one: the `better` answers, or the `last`.")
    ] = "better",
    manual: Annotated[
        Path | None, typer.Option(help="CSV of points by hand: student, exercise, points; comment, extra.")
    ] = None,
    run: Annotated[bool, typer.Option("--run", help="Run the answers in a sandbox too; changes no points.")] = False,
    scheduler: Annotated[str | None, typer.Option(help="Address of a Dask scheduler whose workers judge.")] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Answers judged at a time; if left out, as cores and memory allow.")
    ] = None,
    shard: Annotated[
        str | None, typer.Option(help="Only judge the second of eight parts: 2/8. Without it, parts in --out count.")
    ] = None,
    own: OwnCourse = None,
):
    """Grade notebooks: the exercises of each, from their text, with points and reasons.

    Exit status 3: all else is done, and some rows are not graded.
    """
    from rich.console import Console
    from tqdm import tqdm

    from labkit.grading import grade as grading
    from labkit.grading import policy
    from labkit.grading import roster as rosters
    from labkit.grading.collected import FILE, read_collected
    from labkit.grading.course import Course
    from labkit.grading.judging import CannotJudge
    from labkit.grading.reports.terminal import print_grades
    from labkit.grading.shard import Shard
    from labkit.grading.workers import SchedulerError

    absent = [str(path) for path in paths if not path.exists() and not path.is_symlink()]
    if absent:
        _fail(f"there is no {', '.join(absent)}; give notebooks or folders of them")
    _use_course(own, paths)
    if not collected and len(paths) == 1 and (paths[0] / FILE).is_file():  # one of several may be a student's
        collected = paths[0] / FILE
    if late_policy not in [*policy.LatePolicy]:
        _fail(f"there is no late policy {late_policy!r}: give {' or '.join(policy.LatePolicy)}")
    if deadline and not collected:
        _fail("a deadline needs the times of the commits; give the collected.json of `labkit collect` with --collected")
    try:
        part = Shard.parse(shard) if shard else None
    except ValueError as error:
        _fail(error)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        _fail(f"the grades cannot be written to {out}: {error.strerror}; give another folder with --out")
    with tqdm(desc="graded", unit=" answers", disable=None) as bar:

        def progress(done, total):
            bar.total = total
            bar.update(done - bar.n)

        try:
            course = Course.read(assignment) if assignment else None
            assessment = grading.Assessment(
                rosters.read_roster(roster) if roster else {},
                course.points if course else {},
                read_collected(collected) if collected else {},
                policy.Deadline(_time(deadline), late) if deadline else None,
                manual,
                course.assignment if course else "",
                policy.LatePolicy(late_policy),
            )
            how = {"scheduler": scheduler, "workers": workers, "progress": progress}
            if part:
                judged, left = grading.judge_shard(paths, out, part, assessment, seed, **how)
                bar.write(
                    f"Part {part}: {judged} answers judged into {out}, {left} left over. Once all parts are there:"
                )
                bar.write("run the same without --shard, which puts them together and judges what is left.")
                return
            grades = grading.grade(paths, out, assessment, seed, run=run, tell=bar.write, **how)
        except (rosters.RosterError, SchedulerError, CannotJudge) as error:
            _fail(error)
        except OSError as error:
            _fail(f"{error.filename or out}: {error.strerror or error}; put that right and run this again")
    if not grades:
        _fail(f"there is no notebook in {', '.join(map(str, paths))}; give notebooks or folders of them")
    print_grades(grades, Console())
    print(f"Wrote the reports to {out}")
    if ungraded := list(dict.fromkeys(row.student for row in grades if row.points is None)):
        print(f"Not graded, and left out of files for learning platforms: {', '.join(ungraded)}")
        raise typer.Exit(INCOMPLETE)


def _use_course(folder, submissions=()):
    """Add a folder of own exercises to the book: never one that came with the submissions."""
    if folder is None:
        return
    from labkit.book.chapter import read_chapter
    from labkit.book.contents import SourceError
    from labkit.exercises import OwnCourseError, use_course
    from labkit.exercises.own import own_sources

    folder = folder.resolve()
    if around := [path for path in submissions if path.resolve() in (folder, *folder.parents)]:
        _fail(f"{folder} is in {around[0]}, which students write, and its exercises would run here: move it out")
    try:
        use_course(folder)
        for path in own_sources():
            read_chapter(path)
    except (OwnCourseError, SourceError) as error:
        _fail(error)


def _check_folder(path):
    """Refuse a path that is no folder, or cannot become one; create nothing yet."""
    path = path.absolute()
    existing = next(folder for folder in (path, *path.parents) if folder.exists())
    if not existing.is_dir():
        _fail(f"{existing} is a file; give a folder")
    if not os.access(existing, os.W_OK):
        _fail(f"{existing} cannot be written to: choose another folder")


def _time(text):
    from labkit.grading.policy import parse_time

    try:
        return parse_time(text)
    except ValueError as error:
        _fail(error)


def _fail(message) -> NoReturn:
    print(message, file=sys.stderr)
    raise typer.Exit(1)


def _released():
    """Return the release that contains this labkit, and its folder."""
    from labkit.course.manifest import current
    from labkit.grading.roster import RosterError

    try:
        found = current()
    except RosterError as error:
        _fail(error)
    if found is None:
        _fail("this folder is not a release; run it in the folder of your course, which holds course.json")
    return found


def _check_course(course, folder):
    """Print how the exercises of a release stand, and return the rows."""
    from rich.console import Console
    from rich.text import Text

    from labkit.course.checking import check_course, summary

    console = Console(soft_wrap=True)
    rows = []
    for row in check_course(course, folder):
        console.print(Text(str(row)))
        rows.append(row)
    console.print(summary(course, rows))
    return rows


if __name__ == "__main__":
    main()
