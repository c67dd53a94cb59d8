"""A format that nothing knows of but its own file: tables, rounding and refusals follow.

Then one that a step and the table of an instruction name, too: it is multiplied.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import MappingProxyType

import pytest

import labkit
from labkit.gemm.interface.candidates import supported_formats
from labkit.ptx import matrices
from labkit.ptx.formats import NAMES

PACKAGE = Path(labkit.__file__).parent
TOY = '''
"""float8_e3m4: 3 bits of exponent, 4 of fraction."""

import numpy as np

from labkit.formats.bfloat16 import BF16
from labkit.formats.kinds.mini_float import MiniFloat

E3M4 = MiniFloat(
    name="float8_e3m4",
    number=77,
    dtype=np.dtype(np.uint8),
    exponent_bits=3,
    fraction_bits=4,
    nan=0x7F,
    ptx_name="e3m4",
    arithmetic="float8 tensor",
    type_name="float8_e3m4fn",
    result=BF16,
)
'''
ASKED = """
import json
from dataclasses import dataclass

import numpy as np

import labkit
from labkit import attention, cuda, elementwise, formats, gemm, ptx
from labkit.arrays import operands
from labkit.arrays.element_types import dtype_of, numpy_type
from labkit.formats import BF16, E3M4, FORMATS, FP32, format_named
from labkit.ptx.formats import NAMES, ON_LANES


class Tensor:
    shape, dtype = (16, 16), "torch.float8_e3m4fn"


FORMAT = ptx.E3M4


@cuda.jit
def product(words, out):
    acc = cuda.local.array(4, np.float32)
    t = cuda.threadIdx.x
    for i in range(4):
        acc[i] = 0
    q = words[t]
    ptx.mma(acc, 0, (q, q, q, q), (q, q), FORMAT)
    out[t] = acc[0]


def message(call, *arguments, **options):
    try:
        call(*arguments, **options)
    except Exception as error:
        return str(error)


codes = np.arange(256, dtype=np.uint8)
numbers = E3M4.decode(codes)
bits = np.zeros((16, 16), np.uint8)
words = np.zeros(32, np.uint32)
print(json.dumps({
    "path": labkit.__file__,
    "order": list(FORMATS),
    "round trip": [int(n) for n in codes if not np.isnan(numbers[n]) and E3M4.encode(numbers[n]) != n],
    "numbers": [E3M4.largest, *numbers[[0x01, 0x10, 0x30, 0x7E, 0xB0]].tolist()],
    "symbols": [formats.SYMBOLS["E3M4"] is E3M4, ptx.E3M4, NAMES[77], 32 // ON_LANES[77].bits],
    "types": [str(dtype_of(Tensor())), str(numpy_type("float8_e3m4fn")), operands.TYPE_NAMES[E3M4]],
    "holds": [operands.can_hold(*pair) for pair in ((Tensor(), E3M4), (Tensor(), formats.E4M3), (bits, E3M4))],
    "declared": str(operands.common_format(Tensor(), Tensor())),
    "no such format": message(format_named, "fp4"),
    "gemm": message(gemm.multiply, bits, bits, format="float8_e3m4"),
    "a tensor": message(operands.common_format, Tensor(), Tensor(), None, "AB", (FP32, BF16)),
    "one tensor": message(operands.operand_format, "x", Tensor(), None, (FP32, BF16)),
    "attention": message(attention.attend, *[np.zeros((1, 1, 16, 64), np.uint8)] * 3, format="float8_e3m4"),
    "an instruction": message(labkit.simulate, product, 1, 32, words, np.zeros(32, np.float32)),
}))
"""

NAMED = {  # what names a format that kernels multiply: a step of a ladder, and the table of its instruction
    "gemm/tensor/s01_mma.py": ("FORMAT = RESULT", "FORMATS = BF16, E3M4\nFORMAT = RESULT"),
    "ptx/matrices/__init__.py": ("MULTIPLIED = BF16", "MULTIPLIED = E3M4, BF16"),
}
MULTIPLIED = """
import json

import numpy as np

import labkit
from labkit import gemm
from labkit.formats import BF16, E3M4
from labkit.gemm.interface.candidates import Shape, candidates
from labkit.gemm.problem import LayerProblem

rng = np.random.default_rng(0)
A, B = (E3M4.encode(rng.standard_normal(shape)) for shape in ((5, 40), (7, 40)))
wanted = E3M4.decode(A) @ E3M4.decode(B).T
product = BF16.decode(gemm.multiply(A, B, transpose_b=True, format="float8_e3m4"))
step, problem = gemm.step("tensor", "mma"), LayerProblem(40, 48, 80)
operands = problem.operands(E3M4)
run = step.simulate(*operands, format=E3M4)
try:
    candidates(E3M4, Shape(5, 7, 40), (8, 0))
except RuntimeError as error:
    too_old = str(error)
print(json.dumps({
    "path": labkit.__file__,
    "candidates": list(map(str, candidates(E3M4, Shape(5, 7, 40), (9, 0)))),
    "error": float(np.linalg.norm(product - wanted) / np.linalg.norm(wanted)),
    "step": [problem.is_right(operands, run.operands, E3M4), list(run.traces[0].counters.flops_by_dtype)],
    "too old": too_old,
}))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What the package says with one more file in the folder of formats."""
    return answers(tmp_path_factory.mktemp("package"), ASKED)


@pytest.fixture(scope="module")
def multiplied(tmp_path_factory):
    """What it computes where a step and its instruction name that format."""
    return answers(tmp_path_factory.mktemp("package"), MULTIPLIED, NAMED)


def answers(folder, asked, changes=MappingProxyType({})):
    """The answers of a copy of the package that has the format's file, with a text replaced in some of its files."""
    shutil.copytree(PACKAGE, folder / "labkit", ignore=shutil.ignore_patterns("__pycache__", "exercises", "views"))
    (folder / "labkit" / "formats" / "float8_e3m4.py").write_text(TOY, encoding="utf-8")
    for name, (old, new) in changes.items():
        text = (folder / "labkit" / name).read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{name} has no {old}"
        imported = "\nfrom labkit.formats import BF16, E3M4\nfrom labkit"
        changed = text.replace(old, new).replace("\nfrom labkit", imported, 1)
        (folder / "labkit" / name).write_text(changed, encoding="utf-8")
    (folder / "asked.py").write_text(asked, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(folder), "LABKIT_DEVICE": "simulator"}
    done = subprocess.run(
        [sys.executable, "asked.py"], capture_output=True, text=True, check=False, cwd=folder, env=environment
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert Path(found["path"]).is_relative_to(folder)
    return found


def test_its_numbers_come_back(found):
    assert found["round trip"] == []
    assert found["numbers"] == [30, 2.0**-6, 2.0**-2, 1, 30, -1]


def test_it_stands_in_every_table(found):
    assert found["order"].index("float16") < found["order"].index("float8_e3m4") < found["order"].index("float8_e4m3")
    assert found["symbols"] == [True, 77, "E3M4", 4]
    assert found["types"] == ["uint8", "uint8", "float8_e3m4fn"]
    assert found["holds"] == [True, False, True] and found["declared"] == "float8_e3m4"


def one_of(names):
    *others, last = names
    return f"{', '.join(others)} or {last}"


def test_refusals_know_it(found):
    assert found["no such format"] == f"there is no format 'fp4'; there are {', '.join(found['order'])}"
    assert found["gemm"] == f"float8_e3m4 is not multiplied here: give {one_of(map(str, supported_formats()))}"
    assert found["a tensor"] == ("A holds float8_e3m4fn and B float8_e3m4fn: convert both to float32 or bfloat16")
    assert found["one tensor"] == "x holds float8_e3m4fn: give float32 or bfloat16"
    assert found["attention"] == "float8_e3m4 is not computed here: give float32 or bfloat16 or float16"
    multiplied = one_of(f"`ptx.{NAMES[number]}`" for number in matrices.FORMATS)
    assert f"the format of `ptx.mma` is {multiplied}, not 77" in found["an instruction"]


def test_a_step_and_the_table_of_its_instruction_are_all_that_multiplying_it_takes(multiplied):
    """Also on a GPU for which other formats have the library's kernel, whose instructions do not take this one."""
    assert multiplied["candidates"] == ["mma"]
    assert multiplied["error"] < 2.0**-8 and multiplied["step"] == [True, ["float8 tensor"]]
    assert "no kernel multiplies float8_e3m4 on a GPU of compute capability 8.0" in multiplied["too old"]
