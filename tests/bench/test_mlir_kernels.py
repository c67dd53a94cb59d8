"""The bench of numba_cuda_mlir: what it asks of that compiler, where it is installed, and its record."""

import re
from collections import Counter
from importlib.util import find_spec

import pytest

from labkit import ptx, results
from labkit.bench import mlir
from labkit.simulator.instruction import instruction_of

INSTALLED = bool(find_spec(mlir.PACKAGE))
needs_the_package = pytest.mark.skipif(not INSTALLED, reason=f"needs {mlir.PACKAGE}")


@pytest.mark.skipif(INSTALLED, reason=f"{mlir.PACKAGE} is installed")
def test_a_missing_package_is_named(capsys):
    with pytest.raises(SystemExit):
        mlir.main()
    assert "`pip install numba-cuda-mlir`" in " ".join(capsys.readouterr().out.split())


@needs_the_package
@pytest.mark.needs("numba-cuda", "toolkit")
@pytest.mark.parametrize(
    ("path", "outcome", "instructions"),
    [
        ("gemm/fp32/s03_tiled", mlir.AS_IT_IS, ""),
        ("attention/decode/s02_split", mlir.WITH_INSTRUCTIONS, "load4"),
    ],
)
def test_a_kernel_compiles_with_what_it_needs(path, outcome, instructions):
    step = next(step for step in mlir.steps() if step.path == path)
    rows = mlir.rows_of(step)
    assert rows[0]["outcome"] == outcome and not rows[0]["reason"]
    assert {*instructions.split()} <= {*rows[0]["instructions"].split()}


@needs_the_package
@pytest.mark.needs("numba-cuda", "toolkit")
def test_a_kernel_beyond_the_compiler_is_refused_with_a_reason():
    from labkit import cuda
    from labkit.bench.mlir import compiling

    @cuda.jit
    def kernel(x):
        cuda.nothing(x)

    assert "nothing" in compiling.reason_to_refuse(kernel, (1,))


@needs_the_package
@pytest.mark.needs("numba-cuda", "toolkit")
def test_its_own_functions_are_compiled_too():
    assert mlir.its_own("load4") == {"its_name": "vector.load", "its_outcome": mlir.AS_IT_IS}
    assert mlir.its_own("mma") == {"its_name": "", "its_outcome": ""}
    for name in mlir.ITS_LINES:
        assert "ttribute" not in mlir.its_own(name)["its_outcome"]


def test_its_lines_stand_for_instructions():
    assert all(instruction_of(getattr(ptx, name)) for name in mlir.ITS_LINES)


def test_the_record_has_each_kernel_of_a_step_once():
    rows = results.load("mlir").rows
    kernels = [row for row in rows if "kernel" in row]
    found = {(row["step"], row["kernel"]) for row in kernels}
    assert len(found) == len(kernels)
    # a step that comes before another later on moves its number, and keeps its name
    known = {f"{step.ladder.path}/{step.slug}" for step in mlir.steps()}
    assert {re.sub(r"/s\d+_", "/", row["step"]) for row in kernels} <= known
    assert {row["outcome"] for row in kernels} == {mlir.AS_IT_IS, mlir.WITH_INSTRUCTIONS, mlir.FAILS}
    assert all(bool(row["reason"]) == (row["outcome"] == mlir.FAILS) for row in kernels)
    used_by = {row["instruction"]: row["used_by"] for row in rows if "instruction" in row}
    assert used_by == Counter(name for row in kernels for name in row["instructions"].split())
