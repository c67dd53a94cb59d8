"""The commands pass what they are told on, and say in a sentence what went wrong."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from labkit import cli, places
from labkit.exercises import exercise
from labkit.setup import doctor


def invoke(*arguments):
    return CliRunner().invoke(cli.app, arguments)


def test_help_names_every_command():
    shown = invoke("--help").output
    for command in ("doctor", "lab", "run", "build", "bench", "tune", "grade"):
        assert command in shown


@pytest.mark.parametrize(("healthy", "code"), [(True, 0), (False, 1)])
def test_doctor_exits_with_what_it_found(monkeypatch, healthy, code):
    monkeypatch.setattr(doctor, "run", lambda: healthy)
    assert invoke("doctor").exit_code == code


def test_lab_passes_the_workspace_and_jupyters_own_arguments(monkeypatch, tmp_path):
    from labkit.book import workspace

    seen = []
    monkeypatch.setattr(workspace, "open_lab", lambda *given: seen.append(given))
    assert invoke("lab", "--workspace", str(tmp_path), "--no-browser", "--port=9999").exit_code == 0
    assert seen == [(tmp_path, ("--no-browser", "--port=9999"))]


def test_lab_names_an_option_that_jupyterlab_does_not_have(monkeypatch, tmp_path):
    """JupyterLab ignores it, or prints all that it has."""
    from labkit.book import workspace

    seen = []
    monkeypatch.setattr(workspace, "open_lab", lambda *given: seen.append(given))
    here = ("lab", "--workspace", str(tmp_path))
    for options in (("--prot",), ("--prot", "9999"), ("--no-browser", "--prot=9999")):
        result = invoke(*here, *options)
        assert result.exit_code == 1
        said = "JupyterLab has no option --prot; did you mean --port? `lab --help-all` lists its options"
        assert said in result.output.replace("\n", " ")
    assert "JupyterLab has no option --qqq; `lab --help-all`" in invoke(*here, "--qqq").output
    assert not seen
    theirs = "--help-all", "--ip", "0.0.0.0", "--allow-root", "-y", "--ServerApp.token=", "--gateway-url=http://a"
    assert invoke(*here, *theirs).exit_code == 0
    assert seen == [(tmp_path, theirs)]


def test_build_check_fails_on_a_stale_notebook(monkeypatch):
    from labkit.book import build

    monkeypatch.setattr(build, "build", lambda **_: ["03-tiled-gemm.ipynb"])
    result = invoke("build", "03", "--check")
    assert result.exit_code == 1
    assert "stale: 03-tiled-gemm.ipynb" in result.output
    assert "run `python -m labkit build`" in result.output


def test_build_says_what_a_broken_source_needs(monkeypatch):
    from labkit.book import build

    def broken(**_):
        raise build.SourceError("tiled-gemm.md: the exercise pad-the-tile has no check cell; add one")

    monkeypatch.setattr(build, "build", broken)
    result = invoke("build")
    assert result.exit_code == 1
    assert "add one" in result.output


def test_an_unknown_bench_lists_those_there_are():
    result = invoke("bench", "nothing")
    assert result.exit_code == 1
    assert "there is no bench 'nothing'; there are" in result.output
    assert "simulator" in result.output


def test_the_help_of_bench_lists_every_one_by_name(monkeypatch):
    shown = invoke("bench", "--help").output
    there = {path.stem for path in (places.PACKAGE / "bench").iterdir() if not path.name.startswith("_")}
    assert "gemm_tensor" in there and "counters" in there
    assert [name for name in there if name not in shown] == []


def test_bench_hands_over_record_and_out(monkeypatch, tmp_path):
    from labkit.bench import simulator

    seen = []
    monkeypatch.setattr(simulator, "main", lambda record, out: seen.append((record, out)))
    assert invoke("bench", "simulator", "--record", "--out", str(tmp_path)).exit_code == 0
    assert seen == [(True, tmp_path)]


def test_grade_prints_and_stores_the_points(monkeypatch, tmp_path):
    from labkit.grading import grade as grading

    (tmp_path / "ada.ipynb").touch()
    row = grading.Grade("ada", "ada.ipynb", "pad-the-tile", 1, 2, "[line 4] is never reached", seed=7)
    full = grading.Grade("ada", "ada.ipynb", "choose-the-tile", 3, 3, "Solved.", seed=7)
    seen = []
    monkeypatch.setattr(grading, "grade", lambda *asked, **options: seen.append(asked) or [row, full])
    result = invoke("grade", str(tmp_path / "ada.ipynb"), "--out", str(tmp_path / "grades"), "--seed", "7")
    assert result.exit_code == 0
    assert "[line 4] is never" in result.output
    assert "ada: 4 of 5 points" in result.output
    assert exercise("pad-the-tile").headline in result.output
    assert exercise("choose-the-tile").headline not in result.output  # nothing to be said of what is full
    assert seen == [([tmp_path / "ada.ipynb"], tmp_path / "grades", grading.Assessment(), 7)]


def test_a_shard_is_judged_and_what_to_do_next_is_said(monkeypatch, tmp_path):
    from labkit.grading import grade as grading
    from labkit.grading.shard import Shard

    seen = []
    monkeypatch.setattr(grading, "judge_shard", lambda *asked, **options: seen.append((asked, options)) or (12, 1))
    command = ["grade", str(tmp_path), "--out", str(tmp_path / "grades"), "--seed", "7", "--workers", "3"]
    result = invoke(*command, "--shard", "2/8", "--run")
    assert result.exit_code == 0, result.output
    assert "Part 2/8: 12 answers judged" in result.output and "run the same without --shard" in result.output
    (((*_, shard, assessment, seed), options),) = seen
    assert (shard, assessment, seed, options["workers"]) == (Shard(2, 8), grading.Assessment(), 7, 3)
    result = invoke(*command, "--shard", "9/8")
    assert result.exit_code == 1 and "'9/8' is no part of a class" in result.output


def test_the_exit_status_says_that_something_is_not_graded(monkeypatch, tmp_path):
    from labkit.course import collect as collecting
    from labkit.grading import grade as grading
    from labkit.grading.collected import Collected

    row = grading.Grade("cleo", "", "pad-the-tile", None, 2, "Not graded.", seed=7)
    monkeypatch.setattr(grading, "grade", lambda *asked, **options: [row])
    result = invoke("grade", str(tmp_path), "--out", str(tmp_path / "grades"))
    assert result.exit_code == 3 and "Not graded, and left out" in result.output and "cleo" in result.output
    rows = [Collected("ada", commit="a1"), Collected("bob"), Collected("cleo", fetched=False)]
    monkeypatch.setattr(collecting, "collect", lambda *asked: rows)
    result = invoke("collect", str(tmp_path / "roster.csv"), "--out", str(tmp_path / "out"))
    assert result.exit_code == 3 and "1 of 3 were not fetched: cleo" in result.output


def test_grade_reads_the_teacher_s_lists(monkeypatch, tmp_path):
    from labkit.grading import grade as grading

    (tmp_path / "work").mkdir()
    (tmp_path / "roster.csv").write_text("student,repository\nada,\nben,\n")
    (tmp_path / "course.json").write_text('{"assignment": "hw2", "chapters": [], "points": {"write-saxpy": 5}}')
    (tmp_path / "collected.json").write_text('[{"student": "ada", "committed": "2026-11-20T10:00:00+00:00"}]')
    seen = []
    monkeypatch.setattr(grading, "grade", lambda *asked, **options: seen.append((asked[2], options)) or [])
    lists = ["--roster", str(tmp_path / "roster.csv"), "--assignment", str(tmp_path / "course.json")]
    lists += ["--collected", str(tmp_path / "collected.json")]
    policy = ["--deadline", "2026-11-19T12:00:00", "--late", "10", "--run", "--scheduler", "tcp://a:1"]
    invoke("grade", str(tmp_path / "work"), "--out", str(tmp_path / "grades"), *lists, *policy)
    ((assessment, options),) = seen
    assert (assessment.students, assessment.points) == ({"ada": {}, "ben": {}}, {"write-saxpy": 5})
    assert assessment.assignment == "hw2"
    assert (assessment.deadline.percent_a_day, assessment.deadline.due.day) == (10, 19)
    assert assessment.collected["ada"].time.year == 2026
    assert (options["run"], options["scheduler"]) == (True, "tcp://a:1")


def test_a_deadline_goes_by_the_times_of_a_collection(monkeypatch, tmp_path):
    """Those beside the work, where no others are named; without any it is refused, as nobody would be late."""
    from labkit.grading import grade as grading

    seen = []
    monkeypatch.setattr(grading, "grade", lambda *asked, **options: seen.append(asked[2]) or [])
    (tmp_path / "work").mkdir()
    asked = ["grade", str(tmp_path / "work"), "--out", str(tmp_path / "grades"), "--deadline"]
    assert "a deadline needs the times of the commits; give the coll" in invoke(*asked, "2026-11-19").output
    (tmp_path / "work" / "collected.json").write_text('[{"student": "ada", "committed": "2026-11-20T10:00:00+00:00"}]')
    invoke(*asked, "2026-11-19")
    assert seen[0].collected["ada"].time > seen[0].deadline.due and seen[0].deadline.due.hour == 23
    assert "'Monday' is not a time" in invoke(*asked, "Monday").output


def test_a_late_policy_is_handed_over_and_another_word_refused(monkeypatch, tmp_path):
    policies = []
    monkeypatch.setattr("labkit.grading.grade.grade", lambda paths, out, rules, *_, **__: policies.append(rules) or [])
    asked = ("grade", str(tmp_path), "--out", str(tmp_path / "out"), "--late-policy")
    invoke(*asked, "last")
    assert [rules.late_policy for rules in policies] == ["last"]
    assert "there is no late policy 'first': give better or last" in invoke(*asked, "first").output


def test_the_times_of_a_collection_are_not_those_that_a_student_hands_in(monkeypatch, tmp_path):
    from labkit.grading import grade as grading

    seen = []
    monkeypatch.setattr(grading, "grade", lambda *asked, **options: seen.append(asked[2]) or [])
    for student in ("ann", "mallory"):
        (tmp_path / student).mkdir()
    forged = '[{"student": "ann", "committed": "2026-11-30T10:00:00+00:00"}]'
    (tmp_path / "mallory" / "collected.json").write_text(forged)
    asked = ["grade", str(tmp_path / "ann"), str(tmp_path / "mallory"), "--out", str(tmp_path / "grades")]
    assert "a deadline needs the times" in invoke(*asked, "--deadline", "2026-11-19").output
    invoke(*asked)
    assert not seen[0].collected


def test_grades_that_cannot_be_written_are_said_in_a_sentence(tmp_path):
    (tmp_path / "ada.ipynb").write_text("{}")
    (tmp_path / "grades" / "judgements.jsonl").mkdir(parents=True)
    result = invoke("grade", str(tmp_path / "ada.ipynb"), "--out", str(tmp_path / "grades"))
    assert result.exit_code == 1
    assert "judgements.jsonl: Is a directory; put that right and run this again" in result.output.replace("\n", "")


@pytest.mark.parametrize(
    ("option", "content", "said"),
    [
        ("--roster", "name\nada\n", "has no column `student`"),
        ("--assignment", "{}", "is not the `course.json`"),
        ("--assignment", '{"assignment": "hw2", "chapters": [], "points": {"99.1": 1}}', "not in this book: 99.1"),
        ("--assignment", '{"assignment": "a", "chapters": [], "points": {"write-saxpy": "x"}}', "not numbers"),
        ("--collected", "[1]", "is not what `labkit collect` writes"),
        ("--collected", '[{"student": "ada", "committed": "noon"}]', "is not what `labkit collect` writes"),
        ("--manual", "student,exercise,points,comment\nada,write-saxpy,many,\n", "is not a number"),
        ("--manual", "student,exercise,points,comment\neve,write-saxpy,1,\n", "no such row"),
    ],
)
def test_a_list_that_cannot_be_used_is_said_in_a_sentence(tmp_path, option, content, said):
    (tmp_path / "list").write_text(content)
    (tmp_path / "ada.ipynb").write_text("{}")
    result = invoke("grade", str(tmp_path / "ada.ipynb"), "--out", str(tmp_path / "g"), option, str(tmp_path / "list"))
    assert result.exit_code == 1
    assert said in result.output.replace("\n", "")


def test_rows_of_grades_tell_which_file_even_where_its_path_is_long(monkeypatch, tmp_path):
    from labkit.grading import grade as grading

    files = [f"submissions/autumn-term/group-{n}/homework-of-the-first-week/06-tensor-cores.ipynb" for n in (1, 2)]
    said = "[line 4] is never reached, and so nothing is copied"
    rows = [grading.Grade(file, file, "swizzle-the-tiles", 0, 2, said) for file in files]
    monkeypatch.setattr(grading, "grade", lambda *asked, **options: rows)
    printed = invoke("grade", str(tmp_path), "--out", str(tmp_path / "grades")).output
    assert all(file in printed.replace("\n", "") for file in files)


def test_a_place_for_the_grades_that_is_none_is_said_before_any_grading(monkeypatch, tmp_path):
    from labkit.grading import grade as grading

    (tmp_path / "ada.ipynb").touch()
    monkeypatch.setattr(grading, "grade", lambda *asked, **options: pytest.fail("graded first"))
    result = invoke("grade", str(tmp_path / "ada.ipynb"), "--out", str(tmp_path / "ada.ipynb"))
    assert result.exit_code == 1
    assert "give another folder with --out" in result.output


def test_grading_a_fork_names_the_solutions_that_it_leaves_out_and_looks_for_them_once(monkeypatch, tmp_path):
    from labkit.grading import submission

    (tmp_path / "notebooks" / "solutions").mkdir(parents=True)
    (tmp_path / "notebooks" / "solutions" / "a.ipynb").touch()
    searched, find_notebooks = [], submission.find_notebooks
    monkeypatch.setattr(submission, "find_notebooks", lambda path: searched.append(path) or find_notebooks(path))
    result = invoke("grade", str(tmp_path), "--out", str(tmp_path / "grades"))
    assert result.output.count("Left out: the book's own solutions in") == 1
    assert searched == [tmp_path]


def test_grading_names_whose_work_is_there_without_a_line_in_the_roster(tmp_path):
    for student in ("ada", "eve"):
        (tmp_path / "work" / student).mkdir(parents=True)
        (tmp_path / "work" / student / "a.ipynb").write_text("{")
    (tmp_path / "roster.csv").write_text("student\nada\nben\n")
    asked = ["grade", str(tmp_path / "work"), "--out", str(tmp_path / "grades")]
    told = "Not on the roster, and graded all the same: "
    assert f"{told}eve\n" in invoke(*asked, "--roster", str(tmp_path / "roster.csv")).output
    assert told not in invoke(*asked).output


def test_a_roster_that_is_not_there_is_said_in_a_sentence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert invoke("collect", "none.csv").output == "none.csv cannot be read: No such file or directory\n"


def test_grading_what_is_not_there(tmp_path):
    result = invoke("grade", str(tmp_path / "nobody.ipynb"))
    assert result.exit_code == 1
    assert "give notebooks or folders of them" in result.output


@pytest.mark.parametrize(("name", "there"), [("/bin/labkit", True), ("labkit.exe", True), ("cli.py", False)])
def test_completion_is_offered_for_the_installed_command_alone(name, there):
    """A shell completes one word's arguments: for `python -m labkit` it would take those of every `python`."""
    code = f"import sys; sys.argv = [{name!r}, '--help']; from labkit.cli import main; main()"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    assert "doctor" in shown and ("--install-completion" in shown) == there


@pytest.mark.parametrize(
    ("command", "usage"), [("run", "run [OPTIONS] SCRIPT...\n"), ("tune", "tune [OPTIONS] CALL SIZES...\n")]
)
def test_the_usage_of_a_list_has_its_dots_once(command, usage):
    assert usage in invoke(command).output.replace("{", "").replace("}", "")


def test_the_module_runs_as_a_command():
    shown = subprocess.run([sys.executable, "-m", "labkit.cli", "bench", "--help"], capture_output=True, text=True)
    assert shown.returncode == 0
    assert "Usage: python -m labkit bench" in shown.stdout


@pytest.mark.parametrize("name", ["99", "abc"])
@pytest.mark.parametrize("options", [(), ("--check",)])
def test_a_chapter_that_is_not_there_is_named(name, options):
    result = invoke("build", name, *options)
    assert result.exit_code == 1
    assert f"there is no chapter {name!r}; there are 00" in result.output


def test_a_build_that_changes_nothing_says_so(monkeypatch):
    from labkit.book import build

    monkeypatch.setattr(build, "build", lambda **_: [])
    assert "up to date" in invoke("build", "--check").output


@pytest.mark.parametrize("command", [("bench", "views", "--out"), ("lab", "--workspace")])
@pytest.mark.parametrize("below", ["", "folder"])
def test_a_file_where_a_folder_is_needed(tmp_path, command, below):
    (tmp_path / "file").touch()
    result = invoke(*command, str(tmp_path / "file" / below))
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    assert "file is a file; give a folder" in result.output.replace("\n", "")


def test_a_folder_that_cannot_be_written_is_named_before_anything_runs(monkeypatch, tmp_path):
    from labkit import results
    from labkit.bench import simulator

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli.os, "access", lambda *_: False)
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    monkeypatch.setattr(simulator, "main", lambda *_: pytest.fail("measured first"))
    for command in (("lab",), ("bench", "simulator", "--out", "figures"), ("bench", "simulator", "--record")):
        result = invoke(*command)
        assert result.exit_code == 1
        assert f"{tmp_path} cannot be written to: choose another folder" in result.output.replace("\n", "")


def test_tune_shows_the_times_and_says_what_it_lacks(monkeypatch):
    from labkit import gemm

    assert "on a GPU" in invoke("tune", "gemm", "64", "64", "64").output
    assert "gemm takes M N K, three whole numbers, and got 64 x" in invoke("tune", "gemm", "64", "x").output
    assert "there is gemm, attention.attend" in invoke("tune", "fft", "64", "64", "64").output
    seen = []
    monkeypatch.setattr(gemm, "tune", lambda *sizes, **options: seen.append((sizes, options)) or {"tiled": 0.5})
    result = invoke("tune", "gemm", "64", "32", "16", "--format", "float16", "--transpose-b", "--batches", "2")
    assert result.exit_code == 0 and "0.5000 ms  tiled" in result.output
    assert seen == [((64, 32, 16, "float16"), {"transpose_a": False, "transpose_b": True, "batches": 2})]


@pytest.mark.parametrize(
    ("words", "problem", "left_out", "options"),
    [
        ("norm.rms_norm 8192 4096", "8192x4096 rms", [], {}),
        ("norm.layer_norm rows=4 columns=8", "4x8 layer", [], {}),
        ("norm.batch_norm 2 3 4 5 false layout=NHWC", "2x3x4x5 NHWC", [], {}),
        ("softmax.softmax_backward 7 columns=9", "7x9", [], {}),
        ("attention.attend 1 2 3 64 causal=true window=none", "1x2x3x64 causal", [], {}),
        (
            "attention.attend_backward 1 2 3 64 deterministic=False",
            "1x2x3x64",
            [],
            {"deterministic": False},
        ),
        ("attention.attend_cached 2 4 1 64 100", "2x4x1/100x64", ["lengths", "table"], {}),
        ("attention.attend_cached 2 4 1 64 100 page=16 ragged=true", "2x4x1/100x64 page=16 ragged", [], {}),
    ],
)
def test_tune_takes_the_fields_of_a_problem(words, problem, left_out, options, monkeypatch):
    from importlib import import_module

    from labkit.calls import tuner

    seen = []
    monkeypatch.setattr(tuner, "tune_problem", lambda *of, **more: seen.append((*of, more)) or {"a step": 1})
    result = invoke("tune", *words.split(), "--format", "float32")
    assert result.exit_code == 0 and "1.0000 ms  a step" in result.output, result.output
    package, name = words.split()[0].split(".")
    (call, asked, format, without, more), *_ = seen
    assert call is getattr(import_module(f"labkit.{package}"), name) and str(format) == "float32"
    assert (str(asked), without, more) == (problem, left_out, options)


def test_tune_finds_the_algorithm_of_a_convolution(monkeypatch):
    from types import SimpleNamespace

    from labkit import conv

    rows = [SimpleNamespace(algorithm="im2col/library", time_ms=2.0, reason=""), SimpleNamespace(reason="too large")]
    seen = []
    monkeypatch.setattr(conv, "find", lambda *of: seen.append(of) or rows)
    result = invoke("tune", "conv.forward", *"2 4 9 8 6 3 3 top=1".split(), "--format", "float32")
    assert "2.0000 ms  im2col/library" in result.output
    assert seen == [(conv.Forward(2, 4, 9, 8, 6, 3, 3, top=1), "float32")]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("norm.rms_norm 1 2 layer 4 5 6", "norm.rms_norm got 6, which is one too many: give rows columns"),
        ("attention.attend 1 2", "attention.attend got no queries; no head_dim: give batch heads queries head_dim"),
        ("softmax.softmax 1 2 width=3", "got width, which is unknown"),
        ("softmax.softmax x 3", "rows is 'x', but it must be a whole number"),
        ("softmax.softmax 2 3", "on a GPU"),
    ],
)
def test_tune_refuses_in_a_sentence(words, why):
    result = invoke("tune", *words.split())
    assert result.exit_code == 1 and why in result.output.replace("\n", " ") and "Traceback" not in result.output


@pytest.mark.parametrize("words", ["gemm 64 32 16", "conv.forward 2 4 9 8 6 3 3 top=1", "norm.rms_norm 64 32"])
def test_warm_plans_the_call_that_it_is_given(words, monkeypatch):
    from labkit.calls import tuner

    assert "for a GPU, and none is in use here" in invoke("warm", *words.split()).output.replace("\n", " ")
    seen = []
    monkeypatch.setattr(tuner, "warm", lambda operation, operands: seen.append((operation, operands)))
    result = invoke("warm", *words.split(), "--format", "float32")
    assert result.exit_code == 0 and "compiled 0 kernels; all that the call needs are in" in result.output
    ((operation, operands),) = seen
    operation.check(operands)


def test_warm_refuses_in_a_sentence():
    assert "there is no call 'fft'; there is gemm" in invoke("warm", "fft", "64").output
    assert "gemm takes M N K" in invoke("warm", "gemm", "64").output


@pytest.mark.needs("gpu")
def test_what_warm_compiled_is_not_compiled_again(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    command = [sys.executable, "-m", "labkit.cli", "warm", "gemm", "256", "256", "256"]
    shown = [subprocess.run(command, capture_output=True, text=True).stdout for _ in range(2)]
    assert "compiled 0 kernels" not in shown[0] and "compiled 0 kernels" in shown[1]
