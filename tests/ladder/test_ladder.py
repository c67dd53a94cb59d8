"""Every step of every ladder is right, in each of its formats; and a folder is all that a new operation takes."""

import sys
from importlib import import_module
from textwrap import dedent

import numpy as np
import pytest
from sampling import WHOLE, sampled
from typer.testing import CliRunner

import labkit
from labkit import cli, cuda, ladder, places, results
from labkit.arrays.workspace import Workspace
from labkit.book import diff, show, standings
from labkit.formats import FP32
from labkit.ladder import discovery

STEPS = [step for found in ladder.every_ladder() for step in found]
CASES = [
    pytest.param(step, format, problem, id=f"{step.path} {format} {problem}")
    for step in STEPS
    for format in step.formats
    for problem in step.examples
]


def takes(step, format, problem):
    return format == step.formats[0] or step.takes(*problem.operands(format), format=format)


@pytest.mark.parametrize(("step", "format", "problem"), sampled(CASES, 40))
@pytest.mark.sample(20)
def test_a_step_is_right_and_without_errors(step, format, problem):
    if not takes(step, format, problem):
        pytest.skip(f"{step.path} does not take it in {format}")
    before = problem.operands(format, seed=1)
    run = step.simulate(*before, format=format)
    assert run.errors == ()
    assert problem.is_right(before, run.operands, format)


def test_a_step_has_examples_in_each_of_its_formats():
    """Some may be too large for it, or their rows too short, but in its first format, in which it takes them all."""
    cases = (case.values for case in CASES)
    found = {(step, format) for step, format, problem in cases if takes(step, format, problem)}
    assert found == {(step, format) for step in STEPS for format in step.formats}


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.path)
@pytest.mark.sample(14)
def test_a_launch_writes_what_the_problem_expects(step):
    problem = step.examples[-1]
    before = problem.operands(step.formats[0], seed=2)
    after = before
    if step.launches(*before, format=step.formats[0], workspace=Workspace())[0].grid != ():
        after = [cuda.to_device(X) if isinstance(X, np.ndarray) else X for X in before]
    step.launch(*after, format=step.formats[0])
    found = [X.copy_to_host() if hasattr(X, "copy_to_host") else X for X in after]
    assert problem.is_right(problem.operands(step.formats[0], seed=2), found, step.formats[0])


def test_a_wrong_result_is_not_right():
    step = ladder.ladder("gemm", "fp32").step("tiled")
    problem = step.examples[-1]
    before = problem.operands()
    after = list(step.simulate(*before).operands)
    assert problem.is_right(before, tuple(after))
    for wrong in (np.full_like(after[2], np.nan), after[2].T.reshape(after[2].shape), after[2] * np.float32(1.001)):
        assert not problem.is_right(before, (*after[:2], wrong))


def test_an_output_of_another_shape_is_not_right():
    expected = ladder.Expected(np.full(3, 2.0), np.full(3, 0.1))
    assert expected.holds(np.full(3, 2.05)) and not expected.holds(np.full(3, 2.2))
    for wrong in (np.full((3, 1), 2.0), np.full(1, 2.0), np.zeros(0)):
        assert not expected.holds(wrong)
    assert ladder.Expected(np.array([np.inf]), np.zeros(1)).holds(np.array([np.inf]))


def test_a_nan_is_right_where_one_is_expected():
    expected = ladder.Expected(np.array([np.nan, 1.0]), np.array([np.nan, 0.1]))
    assert expected.holds(np.array([np.nan, 1.0]))
    assert not expected.holds(np.array([0.0, 1.0])) and not expected.holds(np.array([np.nan, np.nan]))


def test_what_a_ladder_does_not_state_is_told():
    step = ladder.ladder("loops")[0]
    with pytest.raises(LookupError, match="the ladder loops states no FORMAT: add it to its __init__.py"):
        step._declared("FORMAT")


def test_a_step_says_which_formats_it_takes():
    step = ladder.ladder("gemm", "tensor").step("mma")
    with pytest.raises(ValueError, match="mma does not take float32: it takes bfloat16, float16, float8_e4m3"):
        step.launches(*step.examples[0].operands(FP32), format=FP32)


def test_what_is_not_there_is_told_by_what_is():
    with pytest.raises(KeyError, match="no ladder 'fp64' of gemm; there is fp32, tensor"):
        ladder.ladder("gemm", "fp64")
    with pytest.raises(KeyError, match="has no step 'tilde'; it has naive, coalesced, tiled"):
        ladder.ladder("gemm", "fp32").step("tilde")


# --- a toy operation -------------------------------------------------------------------------------

TOY = {
    "__init__.py": '"""The mean square of a vector."""\n',
    "problem.py": """
        from dataclasses import dataclass

        import numpy as np

        from labkit import ladder
        from labkit.formats import FP32


        @dataclass(frozen=True)
        class Problem(ladder.Problem):
            n: int

            @property
            def flops(self):
                return 2 * self.n

            def min_bytes(self, format=FP32):
                return 4 * self.n

            def operands(self, format=FP32, seed=0):
                x = np.random.default_rng([seed, self.n]).standard_normal(self.n, np.float32)
                return x, np.full(1, np.nan, np.float32)

            def expected(self, operands, format=FP32):
                squares = operands[0].astype(np.float64) ** 2
                return {1: ladder.Expected(squares.mean(keepdims=True), 1e-6 * squares.sum(keepdims=True))}
        """,
    "plain/__init__.py": """
        from labkit.formats import FP32
        from labkit.toy.problem import Problem

        PROBLEM = Problem
        FORMATS = (FP32,)
        EXAMPLES = (1,), (1000,)
        BENCHED = ((4096,),)
        ROOFLINE_PROBLEM = (512,)
        """,
    "plain/s01_serial.py": """
        \"\"\"One thread adds all squares.\"\"\"

        import numpy as np

        from labkit import cuda
        from labkit.ladder import Launch


        @cuda.jit
        def serial(x, out):
            total = np.float32(0)
            for i in range(x.size):
                total += x[i] * x[i]
            out[0] = total / np.float32(x.size)


        def launches(x, out):
            return [Launch(serial, 1, 1, (x, out))]
        """,
    "plain/s02_in_parts.py": """
        \"\"\"Many threads add a part each; a second launch adds the parts.\"\"\"

        import numpy as np

        from labkit import cuda
        from labkit.ladder import Launch

        COMPARED = (2048,)
        PARTS = 64


        @cuda.jit
        def in_parts(x, parts):
            t = cuda.grid(1)
            total = np.float32(0)
            for i in range(t, x.size, PARTS):
                total += x[i] * x[i]
            parts[t] = total


        @cuda.jit
        def add_up(parts, n, out):
            total = np.float32(0)
            for i in range(parts.size):
                total += parts[i]
            out[0] = total / np.float32(n)


        def launches(x, out, workspace):
            parts = workspace.array("parts", (PARTS,), np.float32)
            return [Launch(in_parts, 2, PARTS // 2, (x, parts)), Launch(add_up, 1, 1, (parts, x.size, out))]
        """,
}


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    """An operation of two steps, one of two launches with workspace, as a folder beside labkit's own."""
    place = tmp_path_factory.mktemp("packages")
    for name, text in TOY.items():
        path = place / "toy" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text).lstrip(), encoding="utf-8")
    labkit.__path__.append(str(place))
    yield ladder.ladder("toy", "plain")
    labkit.__path__.remove(str(place))


def test_a_folder_is_an_operation(toy):
    assert "toy" in places.operations()
    assert [step.slug for step in toy] == ["serial", "in_parts"]
    assert toy in ladder.every_ladder()


def test_its_steps_are_held_against_their_oracle(toy):
    for step in toy:
        for problem in step.examples:
            test_a_step_is_right_and_without_errors(step, FP32, problem)
        test_a_launch_writes_what_the_problem_expects(step)
    before = toy.step("in_parts").examples[1].operands()
    assert len(toy.step("in_parts").simulate(*before).traces) == 2
    assert not toy.step("serial").examples[1].is_right(before, (before[0], np.ones(1, np.float32)))


def broken(folder, monkeypatch, **files):
    """Another operation beside labkit's own: the toy's first step, and files of these names."""
    place = folder / "broken"
    for name, text in {**TOY, **files}.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text).replace("labkit.toy", "labkit.broken").lstrip(), encoding="utf-8")
    monkeypatch.setattr(labkit, "__path__", [*labkit.__path__, str(folder)])
    monkeypatch.setattr(discovery, "ladders", ladder.ladders.__wrapped__)  # which remembers nothing
    for name in [name for name in sys.modules if name.startswith("labkit.broken")]:
        monkeypatch.delitem(sys.modules, name)
    return place


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("def launches(x:\n", "SyntaxError"),
        ("import nothing_of_the_kind\n", "ModuleNotFoundError"),
        ("1 / 0\n", "Zero"),
    ],
)
def test_a_step_that_cannot_be_loaded_is_named(text, why, tmp_path, monkeypatch):
    broken(tmp_path, monkeypatch, **{"plain/s03_third.py": text})
    with pytest.raises(
        ImportError, match=rf"^labkit/broken/plain/s03_third cannot be loaded \({why}.*fix or delete it"
    ) as raised:
        [step for found in ladder.every_ladder() for step in found]
    assert "\n" not in str(raised.value)


def test_two_steps_of_one_slug_are_refused(tmp_path, monkeypatch):
    broken(tmp_path, monkeypatch, **{"plain/s03_serial.py": TOY["plain/s01_serial.py"]})
    words = "broken/plain/s01_serial and broken/plain/s03_serial have one slug"
    with pytest.raises(ValueError, match=words):
        ladder.ladder("broken", "plain").step("serial")


def test_a_step_may_say_otherwise_than_its_ladder(toy):
    assert [step.compared.n for step in toy] == [4096, 2048]


def test_it_is_shown_and_compared(toy):
    serial, in_parts = toy
    assert "def in_parts" in repr(show(in_parts)) and "PARTS = 64" in repr(show(in_parts))
    assert "+ PARTS = 64" in repr(diff(serial, in_parts))


def test_it_stands_under_the_roofline(toy, monkeypatch):
    """Beside a ladder of the book, and in `make test-long` beside all of them, which takes a minute."""
    if not WHOLE:
        monkeypatch.setattr(standings, "every_ladder", lambda: [ladder.ladder("blas", "level1"), toy])
    found = standings.of(toy)
    assert list(found) == ["serial", "in_parts"]
    assert found["in_parts"].intensity == pytest.approx(0.5)
    assert [trace.counters.global_loads for trace in found["in_parts"].traces] == [2 * 512, 64]
    assert "in_parts" in standings.standings()


def test_it_has_rows_in_a_bench(toy, tmp_path, monkeypatch):
    bench = import_module("labkit.bench._harness")
    monkeypatch.setattr(
        bench, "time_in_turns", lambda contenders: {name: bench.Time(2.0, 0.01, 5.0) for name in contenders}
    )
    monkeypatch.setattr(bench._record, "require_gpu", lambda what, program="": type("Gpu", (), {"name": "Some GPU"}))
    done = CliRunner().invoke(cli.app, ["bench", "toy", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    rows = results.load("toy", "some-gpu", tmp_path).rows
    assert [(row["step"], row["n"], row["time_ms"]) for row in rows] == [("serial", 4096, 2.0), ("in_parts", 4096, 2.0)]
    assert all(row["error"] < 1e-5 and row["gb_s"] == pytest.approx(4 * 4096 / 2e6) for row in rows)
    assert results.Results("toy", {}, rows).select(n=4096) == rows


@pytest.mark.parametrize(("grid", "axis"), [((1, 65536), "y"), ((1, 1, 65536), "z"), (2**31, "x")])
def test_a_grid_that_no_gpu_takes_is_told(grid, axis):
    with pytest.raises(ValueError, match=f"blocks along {axis}, and a GPU takes .*: take a smaller problem"):
        ladder.Launch(None, grid, 32, ())
    ladder.Launch(None, (2**31 - 1, 65535, 65535), 32, ())
