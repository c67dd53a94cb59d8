"""The page of records: like is compared with like, and the worst comes first."""

import re

import pytest

from labkit import results
from labkit.book.site.records import compare, machines, records_page

H100 = "nvidia-h100-80gb-hbm3"


@pytest.fixture(scope="module")
def found():
    return compare(H100)


def test_gpus_with_baselines_have_a_page():
    assert H100 in machines()
    assert "amd-epyc" not in machines()


def test_each_figure_is_the_records(found):
    (one,) = (each for each in found if each.operation == "gemm_tensor" and each.problem == "4096x4096x4096"
              and each.format == "bfloat16")  # fmt: skip
    rows = results.load("gemm_tensor", H100).select(problem=one.problem, dtype=one.format)
    assert one.time_ms == min(row["time_ms"] for row in rows)
    assert one.baseline_time_ms == min(row["baseline_time_ms"] for row in rows if row.get("baseline") == "cuBLAS")


def test_a_copy_a_twin_and_another_format_are_no_baselines(found):
    names = {each.baseline for each in found}
    assert not {"copy", "copies", "cuMemcpy", "CUDA C++"} & names
    assert not [name for name in names if "TF32" in name or "bf16" in name]


def test_gradients_are_compared_with_gradients(found):
    forward = {each.step for each in found if each.operation == "conv"}
    assert not [step for step in forward if step.startswith("backward")]
    assert {each.step for each in found if each.operation == "conv_backward_data"} == {"backward_data"}


def test_the_worst_comes_first():
    text = records_page(H100)
    worst = [float(row) for row in re.findall(r"^\| \[.*\| ([\d.]+) \|$", text, re.M)]
    assert worst == sorted(worst)
    assert len(worst) > 15
    for section in text.split("\n## ")[1:]:
        ratios = [float(row) for row in re.findall(r"^\| [^|]*\| [^|]*\| ([\d.]+) \|", section, re.M)]
        assert ratios
        assert ratios == sorted(ratios)
