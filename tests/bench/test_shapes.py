"""The shapes of models: how many there are, that the calls compute them, and that a record is continued."""

import numpy as np
import pytest

from labkit import attention, conv, cuda, gemm, norm, results, softmax
from labkit.bench import shapes
from labkit.bench.shapes.models import cases
from labkit.formats import BF16, FP32
from labkit.ladder import relative_error

SMALL = {  # a problem of each call
    "gemm.multiply": gemm.LayerProblem(5, 6, 7),
    "attention.attend": attention.AttentionForward(1, 2, 5, 16),
    "attention.attend_backward": attention.AttentionBackward(1, 2, 5, 16, causal=True),
    "attention.attend_cached": attention.AttentionDecode(1, 2, 1, 64, 9, 1),
    "norm.layer_norm": norm.RowForward(3, 8),
    "norm.rms_norm": norm.RowForward(3, 8, "rms"),
    "norm.layer_norm_backward": norm.RowBackward(3, 8),
    "norm.rms_norm_backward": norm.RowBackward(3, 8, "rms"),
    "norm.batch_norm": norm.BatchForward(2, 3, 4, 5, layout="NHWC"),
    "norm.batch_norm_backward": norm.BatchBackward(2, 3, 4, 5, layout="NHWC"),
    "softmax.softmax": softmax.Forward(3, 8),
    "softmax.softmax_backward": softmax.Backward(3, 8),
    "conv.forward": conv.Forward(1, 2, 5, 6, 3, 3, 3, top=1),
    "conv.backward_data": conv.BackwardData(1, 2, 5, 6, 3, 3, 3, top=1),
    "conv.backward_filter": conv.BackwardFilter(1, 2, 5, 6, 3, 3, 3, top=1),
}


def test_the_list_has_every_call_and_no_case_twice():
    names = [shapes._name(case) for case in cases()]
    assert len(names) == len({*names}) >= 150
    assert {case.call for case in cases()} == shapes.BASELINES.keys() == SMALL.keys()


@pytest.mark.parametrize("call", SMALL)
def test_a_call_computes_its_problem(call):
    problem, format = SMALL[call], BF16 if call == "attention.attend_cached" else FP32
    host = problem.operands(format)
    operands = tuple(cuda.to_device(X) if isinstance(X, np.ndarray) else X for X in host)
    shapes._contender(call)(problem, format, *operands)(0)
    found = tuple(X.copy_to_host() if hasattr(X, "copy_to_host") else X for X in operands)
    assert relative_error(problem, problem.expected(host, format), found, format) < (1e-2 if format == BF16 else 1e-5)


def test_a_record_that_lacks_rows_is_continued_and_a_whole_one_begins_anew(tmp_path):
    def rows_of(some):
        return [{"model": c.model, "call": c.call, "problem": str(c.problem), "dtype": c.format.name} for c in some]

    every = rows_of(cases())
    results.save(results.Results(shapes.NAME, {"gpu": "A GPU"}, every[:7]), "A GPU", tmp_path)
    assert len(shapes.find_rows("A GPU", tmp_path)) == 7
    results.save(results.Results(shapes.NAME, {"gpu": "A GPU"}, every), "A GPU", tmp_path)
    assert shapes.find_rows("A GPU", tmp_path) == shapes.find_rows("another", tmp_path) == []


def test_the_summary_takes_the_fastest_baseline_of_a_problem(capsys):
    row = {"model": "m", "call": "softmax.softmax", "problem": "3x8", "dtype": "float32", "time_ms": 1.0}
    shapes.print_summary("title", [{**row, "baseline": name, "ratio": ratio} for name, ratio in (("a", 2), ("b", 0.5))])
    shown = capsys.readouterr().out
    assert "0.50" in shown and "2.00" not in shown
