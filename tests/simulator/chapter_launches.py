"""Launches of the kernels of the first chapters, and what the simulator says of each.

`python chapter_launches.py` prints it as JSON, `python chapter_launches.py without-numba` likewise where none is found.
"""

import ast
import hashlib
import json
import linecache
import re
import sys
import time
from pathlib import Path

if "without-numba" in sys.argv:
    sys.modules["numba"] = sys.modules["numba_cuda"] = None  # type: ignore[assignment]

import numpy as np

import labkit
from labkit import cuda, gemm
from labkit.simulator import seam

CHAPTERS = Path(__file__).parents[2] / "notebooks" / "source"
EXPLORED = "start-here: hasty", "start-here: mended"
CHECKED = {
    "pass-it-on": "start-here: mended",
    "write-saxpy": "first-gpu-matmul: saxpy",
    "rows-and-columns": "first-gpu-matmul: add",
    "neighbours-together": "first-gpu-matmul: double",
}
CELL = re.compile(r"```\{code-cell\}[^\n]*\n(.*?)```", re.DOTALL)


def kernels_of(chapter: str) -> dict:
    """The kernels that a chapter's cells define; exercises are solved. No other statement of a cell runs."""
    found: dict = {}
    for number, cell in enumerate(CELL.findall((CHAPTERS / f"{chapter}.md").read_text(encoding="utf-8"))):
        text = "\n".join(line for line in cell.splitlines() if not line.startswith(":"))
        if "@cuda.jit" not in text:
            continue
        filename = f"<{chapter} {number}>"
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
        tree = ast.parse(text)
        tree.body = [node for node in tree.body if _is_definition(node)]
        scope = {"cuda": cuda, "np": np}
        exec(compile(tree, filename, "exec"), scope)
        found |= {f"{chapter}: {name}": value for name, value in scope.items() if hasattr(value, "py_func")}
    return found


def _is_definition(node) -> bool:
    """Whether a statement defines a kernel or a constant."""
    return (
        isinstance(node, ast.FunctionDef)
        and bool(node.decorator_list)
        or (
            isinstance(node, ast.Assign)
            and all(isinstance(name, ast.Name) and name.id.isupper() for name in node.targets)
        )
    )


def floats(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def zeros(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


def whole(*shape):
    return (floats(*shape) > 0).astype(np.int32)


def problem(*sides):
    return gemm.Problem(*sides).operands()


# Of each kernel its launches: grid, block, arguments, and more for `simulate`.
def launches() -> dict:
    three = zeros(12, dtype=np.int32), zeros(12, dtype=np.int32), zeros(12, dtype=np.int32)
    in_a_circle = 1, 64, floats(64), zeros(64), 3
    return {
        "start-here: double": (8, 128, floats(1000), zeros(1000)),
        "start-here: pass_on": in_a_circle,
        "start-here: hasty": in_a_circle,
        "start-here: mended": in_a_circle,
        "first-gpu-matmul: whoami": (3, 4, *three),
        "first-gpu-matmul: double_unguarded": (3, 4, floats(10), zeros(10)),
        "first-gpu-matmul: lanes_disagree": (32, 128, floats(4096), floats(4096), zeros(4096)),
        "first-gpu-matmul: warps_disagree": (32, 128, floats(4096), floats(4096), zeros(4096)),
        "first-gpu-matmul: strided": (1, 32, floats(2048), zeros(32)),
        "first-gpu-matmul: product": ((4, 4), (16, 16), *problem(64, 64, 64)),
        "first-gpu-matmul: saxpy": (8, 128, np.float32(3), floats(1000), floats(1000), zeros(1000)),
        "first-gpu-matmul: add": ((3, 5), (16, 16), floats(70, 33), floats(70, 33), zeros(70, 33)),
        "first-gpu-matmul: double": (2, 128, floats(1000), zeros(1000)),
        "first-gpu-matmul: generation": (
            (3, 5),
            (16, 16),
            whole(70, 33),
            zeros(70, 33, dtype=np.int32),
        ),
        "tiled-gemm: my_tiled": ((5, 7), (8, 8), *problem(53, 37, 41)),
        "tiled-gemm: no_first_barrier": (1, (8, 8), *problem(8, 8, 24)),
        "tiled-gemm: no_second_barrier": (1, (8, 8), *problem(8, 8, 24)),
        "tiled-gemm: add_rows": (1, 32, np.ones((32, 32), np.float32), zeros(32)),
        "tiled-gemm: two_barriers": ((5, 7), (8, 8), *problem(53, 37, 41)),
        "tiled-gemm: nearest": (5, 64, floats(2, 300), floats(2, 200), zeros(300)),
        "tiled-gemm: transpose": ((2, 2), (32, 32), floats(61, 45), zeros(45, 61)),
        "tiled-gemm: tuned_matmul": ((2, 3), (16, 16), 2.5, *problem(37, 31, 64)),
        "tiled-gemm: tiled_matmul": ((2, 3), (16, 16), floats(64, 37), floats(64, 31), zeros(37, 31)),
        "refused: whole_matrices": (1, 32, *problem(4, 4, 4)),
        "gemm: naive": _step("naive"),
        "gemm: coalesced": _step("coalesced"),
        "gemm: tiled": _step("tiled"),
    }


@cuda.jit
def whole_matrices(A, B, C):
    i = cuda.grid(1)
    if i < C.shape[0]:
        C[i, 0] = A @ B


def _step(slug):
    step = gemm.step("fp32", slug)
    return *step.geometry(64, 64), *problem(64, 64, 64)


def kernels() -> dict:
    found = {f"gemm: {slug}": gemm.step("fp32", slug).kernel for slug in ("naive", "coalesced", "tiled")}
    for chapter in ("start-here", "first-gpu-matmul", "tiled-gemm"):
        found |= kernels_of(chapter)
    return found | {"refused: whole_matrices": whole_matrices}


def told(kernel, launch) -> dict:
    """What the simulator says of a launch."""
    grid, block, *arguments = launch
    try:
        trace = labkit.simulate(kernel, grid, block, *arguments)
    except labkit.KernelError as error:
        return {"refused": str(error)}
    outputs = [hashlib.sha256(np.ascontiguousarray(X)).hexdigest() for X in trace.outputs if isinstance(X, np.ndarray)]
    return {"outputs": outputs, "trace": json.loads(json.dumps(trace.to_json()))}


def explored(kernel, launch) -> list:
    """The orders in which one round of a launch may run, and what each leaves."""
    grid, block, x, out, _ = launch
    outcomes = labkit.explore(kernel, grid, block, x, out, 1).outcomes
    return [[outcome.orders, outcome.outputs[1].tolist()] for outcome in outcomes]


def everything() -> dict:
    """All that is told, by what is asked."""
    found, launched = kernels(), launches()
    assert found.keys() == launched.keys()
    return {
        **{name: told(kernel, launched[name]) for name, kernel in found.items()},
        **{f"explored {name}": explored(found[name], launched[name]) for name in EXPLORED},
        **{f"checked {exercise}": str(labkit.check(exercise, found[name])) for exercise, name in CHECKED.items()},
    }


if __name__ == "__main__":
    answers = {"told": everything(), "numba": seam.is_installed, "processor_seconds": time.process_time()}
    json.dump(answers, sys.stdout)
