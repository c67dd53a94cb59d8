"""The bench of implicit GEMM: layers of equal products, and a kernel that differs in its divisions alone."""

import pytest

from labkit import conv, results
from labkit.bench import implicit_gemm
from labkit.formats import FP32


def test_layers_have_equal_products_and_different_sizes():
    problems = implicit_gemm.problems_of_products()
    products = {(problem.C * problem.R * problem.S, problem.N * problem.P * problem.Q) for problem in problems}
    assert products == {(implicit_gemm.CRS, implicit_gemm.NPQ)}
    assert len({problem.R for problem in problems}) == 8 and len({problem.N for problem in problems}) == 6
    assert len({problem.flops for problem in problems}) == 1


def test_magic_with_plain_divisions_is_right():
    problem = conv.Forward(2, 3, 7, 6, 4, 3, 2, stride_h=2, top=1, left=1)
    operands = problem.operands()
    implicit_gemm.magic_with_division(problem, FP32, *operands)(0)
    assert problem.is_right(operands, operands)


def test_the_bench_says_that_it_needs_a_gpu(monkeypatch, capsys):
    monkeypatch.setenv("LABKIT_DEVICE", "simulator")
    with pytest.raises(SystemExit):
        implicit_gemm.main()
    assert "times kernels on a GPU" in capsys.readouterr().out


# --- what the chapter says of the recorded figures ----------------------------------------------------


def recorded(name):
    return results.load(f"implicit_gemm_{name}", "nvidia-h100-80gb-hbm3").rows


def test_equal_products_have_equal_speed():
    speeds = [row["tflops"] for row in recorded("products")]
    assert len(speeds) == 13 and min(speeds) > 43.85 and max(speeds) < 44.35
    errors = {row["R"]: row["baseline_error"] for row in recorded("products") if row["N"] == 64}
    assert all(errors[side] < 0.25 * errors[3] for side in (6, 8, 12)), "of a transform, which torch picks there"


def test_two_plain_divisions_take_23_to_29_percent_more_time():
    times = {(row["step"], row["problem"]): row["time_ms"] for row in recorded("division")}
    for problem in {problem for _, problem in times}:
        assert 1.225 < times["magic with //", problem] / times["magic", problem] < 1.295
        assert times["magic", problem] < times["offsets", problem] < times["magic with //", problem]


def test_tf32_is_faster_where_torch_takes_no_transform():
    times = {(row["baseline"], row["H"]): row["baseline_time_ms"] for row in recorded("tf32")}
    gains = {side: times["torch", side] / times["torch, TF32", side] for side in (128, 64, 32, 16, 13)}
    assert gains.pop(128) == pytest.approx(1, abs=0.01) and all(3.9 < gain < 6.2 for gain in gains.values())
    assert all(times["cuDNN's search", side] < times["torch, TF32", side] for side in (64, 32, 16)), "an FFT"
