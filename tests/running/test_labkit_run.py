"""`labkit run`: programs for numba.cuda run unedited, and every fault is reported once."""

import json
import re
from xml.etree import ElementTree

import pytest
from programs import HEADER, SHIFT, labkit, run


def test_a_fault_is_told_once_however_many_launches_have_it(tmp_path):
    (tmp_path / "program.py").write_text(SHIFT)
    result = labkit(tmp_path, "run", "program.py")  # a new Python
    assert result.returncode == 1
    assert result.stdout.startswith("sum ")
    report = result.stderr
    assert report.count("error (race) in kernel shift") == 1
    assert report.count("program.py:9: error (bounds) in kernel shift") == 1
    assert "Put `cuda.syncthreads()` between line 8 and line 9." in " ".join(report.split())
    assert "9 | out[t] = s[(t + 1) % 64] + x[t + 1]" in report
    assert "Launched at program.py:15." in report
    assert "program.py:9: bounds in 3 launches, 3 times" in report
    assert re.search(r"labkit: 2 errors and 0 pieces of advice in 3 launches of 1 kernel, [\d.]+ s", report)
    assert max(map(len, report.splitlines())) <= 80


def test_two_faults_of_a_line_are_in_one_launch(tmp_path):
    program = (
        HEADER
        + """
@cuda.jit
def late(x):
    i = cuda.grid(1)
    x[i] += 1

late[2, 32](np.zeros(60))
"""
    )
    report = run(tmp_path, program).stderr
    assert "labkit: 1 error and 0 pieces of advice in 1 launch of 1 kernel" in report
    assert "launches, " not in report  # the load and the store are of one launch


def test_a_right_program_ends_with_its_own_status_and_output(tmp_path):
    program = (
        HEADER
        + """
import sys

@cuda.jit
def double(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] += x[i]

x = np.arange(5)
double[1, 32](x)
print(x, sys.argv, __name__)
sys.exit(int(sys.argv[2]))
"""
    )
    for status in (0, 3):
        result = run(tmp_path, program, "--flag", str(status))
        assert result.stdout == f"[0 2 4 6 8] ['program.py', '--flag', '{status}'] __main__\n"
        assert result.returncode == status
        assert "labkit: 0 errors" in result.stderr


@pytest.mark.parametrize(
    "imports",
    [
        "from numba import cuda",
        "import numba.cuda\nfrom numba.cuda import *\ncuda = numba.cuda",
        "import numba.cuda as cuda",
        "import numba as nb\nimport numba.cuda\ncuda = nb.cuda",
    ],
)
def test_numba_is_imported_in_any_way(tmp_path, imports):
    program = f"""\
{imports}
import numpy as np

@cuda.jit
def count(out):
    cuda.atomic.add(out, 0, 1)

out = np.zeros(1, np.int64)
count[2, 32](out)
print(out, cuda.is_available(), len(cuda.gpus), cuda.get_current_device().name)
"""
    result = run(tmp_path, program)
    assert result.stdout == "[64] True 1 simulator of the GPU H100 SXM\n", result.stderr


@pytest.mark.parametrize(
    ("imports", "body", "value"),
    [
        ("from numba.cuda.libdevice import fabsf", "out[i] = fabsf(x[i])", 1.5),
        ("from numba.cuda import libdevice", "out[i] = libdevice.fabsf(x[i])", 1.5),
        ("from numba.cuda.types import float32", "out[i] = float32(x[i]) - float32(1)", -2.5),
    ],
)
def test_submodules_have_their_names(tmp_path, imports, body, value):
    program = f"""{HEADER}{imports}

@cuda.jit
def k(x, out):
    i = cuda.grid(1)
    {body}

out = np.zeros(1, np.float32)
k[1, 1](np.array([-1.5], np.float32), out)
print(out[0])
"""
    result = run(tmp_path, program)
    assert result.stdout == f"{value}\n", result.stderr


def test_a_submodule_that_is_not_simulated_is_named(tmp_path):
    result = run(tmp_path, "import numba.cuda.cudadrv.nvvm")
    assert result.returncode == 1
    assert "labkit's simulator has nothing in place of numba.cuda.cudadrv.nvvm" in result.stderr


def test_a_misspelt_name_of_the_host_is_told_with_the_right_one(tmp_path):
    result = run(tmp_path, HEADER + "cuda.to_devce(np.ones(3))")
    assert "(did you mean `cuda.to_device`?)" in result.stderr


@pytest.mark.parametrize("package", ["numba.cuda", "numba_cuda_mlir.cuda"])
def test_a_misspelt_name_that_is_imported_is_told_with_the_right_one(tmp_path, package):
    result = run(tmp_path, f"from {package} import gridd")
    assert "(did you mean `cuda.grid`?)" in result.stderr and result.returncode == 1
    result = run(tmp_path, f"try:\n    from {package} import gridd\nexcept ImportError:\n    print('none')")
    assert result.stdout == "none\n"


def test_random_numbers_come_from_numbas_generator(tmp_path):
    program = (
        HEADER
        + """
from numba.cuda.random import create_xoroshiro128p_states, xoroshiro128p_uniform_float32

@cuda.jit
def draw(states, out):
    i = cuda.grid(1)
    out[i] = xoroshiro128p_uniform_float32(states, i)

out = np.zeros(64, np.float32)
draw[1, 64](create_xoroshiro128p_states(64, seed=1), out)
print(0 < out.min() < out.max() < 1, np.unique(out).size)
"""
    )
    result = run(tmp_path, program)
    assert result.stdout == "True 64\n", result.stderr


def test_an_exception_shows_the_programs_lines_and_none_of_ours(tmp_path):
    program = (
        HEADER
        + """
@cuda.jit
def bad(x):
    x[0] = open("file")

def launch():
    bad[1, 32](np.zeros(3))

launch()
"""
    )
    result = run(tmp_path, program)
    assert result.returncode == 1
    frames = re.findall(r'File "(.*?)", line (\d+)', result.stderr)
    assert [(file.rsplit("/")[-1], int(line)) for file, line in frames] == [("program.py", 12), ("program.py", 10)]
    assert "KernelError: line 7:" in result.stderr


def test_a_loop_without_end_is_stopped_in_the_programs_lines(tmp_path):
    program = """
@cuda.jit
def endless(x):
    while x[0] == 0:
        x[1] += 1

endless[1, 1](np.zeros(2))
"""
    result = run(tmp_path, HEADER + program)
    assert result.returncode == 1
    assert [int(line) for line in re.findall(r'File ".*?", line (\d+)', result.stderr)] == [10]
    assert "KernelError: line 7: the kernel was stopped here after" in result.stderr
    assert "or pass `--time-limit 60`: launches may then do 20 times as much work" in result.stderr


def test_a_module_runs_as_python_does(tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "__main__.py").write_text(SHIFT)
    result = labkit(tmp_path, "run", "-m", "package")
    assert result.returncode == 1
    assert "error (race) in kernel shift" in result.stderr


def test_reports_for_other_programs_agree(tmp_path):
    result = run(tmp_path, SHIFT, options=("--json", "r.json", "--junit", "r.xml", "--github"))
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["status"] == result.returncode == 1
    assert [(f["kind"], f["line"], f["launches"]) for f in report["findings"]] == [("race", 9, 3), ("bounds", 9, 3)]
    (kernel,) = report["kernels"]
    assert (kernel["kernel"], kernel["launches"], kernel["threads"]) == ("shift", 3, 192)
    assert kernel["counters"]["global_stores"] == 192

    suite = ElementTree.parse(tmp_path / "r.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    assert "syncthreads" in suite.find("testcase/failure").text

    annotations = [line for line in result.stdout.splitlines() if line.startswith("::")]
    assert len(annotations) == 2
    assert annotations[0].startswith("::error file=program.py,line=9,title=race in kernel shift::Race on s[")


def test_kernels_of_one_name_keep_their_own_findings(tmp_path):
    program = (
        HEADER
        + """
def make(offset):
    if offset:
        @cuda.jit
        def kernel(out):
            out[cuda.grid(1) + 1] = 3
    else:
        @cuda.jit
        def kernel(out):
            out[cuda.grid(1)] = 3
    return kernel

for offset in (0, 1):
    make(offset)[1, 32](np.zeros(32))
"""
    )
    result = run(tmp_path, program, options=("--junit", "r.xml"))
    assert "labkit: 1 error and " in result.stderr
    assert ElementTree.parse(tmp_path / "r.xml").getroot().get("failures") == "1"


def test_advice_comes_once_for_a_line_and_after_the_errors(tmp_path):
    program = (
        HEADER
        + """
@cuda.jit
def columns(x, y, out):
    i = cuda.grid(1)
    out[i, 0] = x[i, 0] + y[i, 0]

@cuda.jit
def beyond(out):
    out[cuda.grid(1) + 1] = 3

x = np.ones((64, 64), np.float32)
columns[2, 32](x, x, x.copy())
beyond[1, 32](np.zeros(32))
"""
    )
    report = run(tmp_path, program).stderr
    assert report.count("advice (uncoalesced)") == 1
    assert report.index("error (bounds)") < report.index("advice (uncoalesced)")


def test_the_device_answers_what_programs_ask(tmp_path):
    program = """\
from numba import cuda

memory = cuda.current_context().get_memory_info()
with cuda.gpus[0] as device:
    print(memory.free <= memory.total, device.MAX_THREADS_PER_BLOCK, device.COMPUTE_CAPABILITY_MAJOR)
print(cuda.detect(), [gpu.id for gpu in cuda.gpus], cuda.gpus.current == cuda.get_current_device())
"""
    result = run(tmp_path, program)
    assert result.stdout.splitlines() == [
        "True 1024 9",
        "Found 1 CUDA devices: simulator of the GPU H100 SXM",
        "True [0] True",
    ]


@pytest.mark.parametrize("option", ["--json", "--junit"])
def test_a_report_without_a_folder_is_refused_before_the_program_runs(tmp_path, option):
    result = run(tmp_path, "print('ran')", options=(option, "absent/report"))
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("there is no folder absent for the report report: make it")


def test_options_after_the_script_are_its_own(tmp_path):
    result = run(tmp_path, "import sys; print(sys.argv[1:])", "--json", "mine", "-m", "--help")
    assert result.stdout == "['--json', 'mine', '-m', '--help']\n"
    assert "launched no kernel" in result.stderr


def test_an_order_meant_for_us_after_the_script_is_told_of(tmp_path):
    result = run(tmp_path, "import sys; print(sys.argv[1:])", "--explore", "--time-limit=2", "--json", "mine")
    assert result.stdout == "['--explore', '--time-limit=2', '--json', 'mine']\n"
    for option in ("--explore", "--time-limit=2"):
        assert f"{option} comes after program.py, which gets it; put options" in result.stderr
    assert "--json" not in result.stderr


def test_a_missing_script_is_a_sentence(tmp_path):
    result = labkit(tmp_path, "run", "absent.py")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("there is no file absent.py; give a script")


def test_launches_with_nothing_to_store_are_right_and_unwritten_copies_are_not(tmp_path):
    program = (
        HEADER
        + """
@cuda.jit
def sift(x, swaps, parity):
    i = 2 * cuda.grid(1) + parity
    if i + 1 < x.size and x[i] > x[i + 1]:
        x[i], x[i + 1] = x[i + 1], x[i]
        swaps[0] = 1

@cuda.jit
def double(x, out):
    i = cuda.grid(1)
    out[i] = x[i] + x[i]

x = np.array([3, 1, 2, 0])
while True:  # odd-even sort, until a round has nothing to swap
    swaps = np.zeros(1, np.int32)
    sift[1, 32](x, swaps, 0)
    sift[1, 32](x, swaps, 1)
    if not swaps[0]:
        break
print(x)
x = np.arange(100)
out = cuda.device_array_like(x)
double[100 // 32, 32](x, out)
out.copy_to_host()
"""
    )
    result = run(tmp_path, program)
    assert result.stdout == "[0 1 2 3]\n"
    assert result.returncode == 1
    assert "labkit: 1 error and 0 pieces of advice" in result.stderr
    assert "program.py:15: error (unwritten) in kernel double" in result.stderr
    assert "Copied at program.py:28." in result.stderr


def test_an_unknown_option_is_a_sentence(tmp_path):
    result = labkit(tmp_path, "run", "--explor", "absent.py")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("there is no option --explor; `labkit run --help` lists them")


def test_all_options_together_agree(tmp_path):
    options = "--explore", "--time-limit", "100", "--json", "r.json", "--junit", "r.xml", "--github"
    result = run(tmp_path, SHIFT, options=options)
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["status"] == result.returncode == 1
    found = [(f["kind"], f["severity"], f["line"], f["launches"]) for f in report["findings"]]
    assert found == [(kind, "error", 9, 3) for kind in ("race", "bounds", "order")]
    failure = ElementTree.parse(tmp_path / "r.xml").getroot().find("testcase/failure")
    assert "error (order)" in failure.text
    assert result.stdout.count("::error file=program.py,line=9,title=") == 3
    assert max(map(len, result.stderr.splitlines())) <= 80


def test_the_help_fits_80_columns(tmp_path):
    result = labkit(tmp_path, "run", "--help")
    assert max(map(len, result.stdout.splitlines())) <= 80
    for option in ("--explore", "--time-limit", "--json", "--junit", "--github", "-m"):
        assert option in result.stdout
    assert "..." not in result.stdout.split("Arguments")[1]  # nothing is cut off


def test_the_launches_of_a_line_are_counted_whatever_arrays_it_fails_on(tmp_path):
    """Each launch fails on another array of the line, the last on one by a load and by a store."""
    program = (
        HEADER
        + """
@cuda.jit
def add(x, y):
    i = cuda.grid(1)
    y[i] += x[i]

for sizes in (32, 31), (31, 32):
    add[1, 32](*(np.zeros(size, np.float32) for size in sizes))
"""
    )
    report = run(tmp_path, program, options=("--json", "report.json")).stderr
    assert "program.py:8: bounds in 2 launches, 3 times" in report
    findings = json.loads((tmp_path / "report.json").read_text())["findings"]
    assert sorted((finding["array"], finding["launches"], finding["count"]) for finding in findings) == [
        ("x", 1, 1),
        ("y", 1, 2),
    ]
