"""Who stands on whom: read from the import statements of every module."""

import ast
import math
import re
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from imports import module_file

import labkit
from labkit import ptx

PACKAGE = Path(labkit.__file__).parent
# Each room stands on those before it, and on no later one.
ROOMS = """
    places layout table rebinding formats machine trace results
    simulator ptx cuda arrays ladder parts calls forecast
    blas layouts gemm loops conv norm softmax attention elementwise nn
    checking exercises bench views book grading course running setup cli __main__
""".split()
SIMULATOR = """
    errors limits seam events sampling caches groups numba_types disturbance family host_device unwritten host values
    tensor_maps signatures functions random lanes language warps parted reading counters arguments checks l2 units
    arrays collectives dynamic pace warp_order advice slices scheduler report records memory raised launch pieces
    atomics operands tiles instruction translator coverage translate run in_place explorer
""".split()
RANK = {room: rank for rank, room in enumerate(ROOMS)}
RANK_IN_SIMULATOR = {room: rank for rank, room in enumerate(SIMULATOR)}
OPERATIONS = "blas layouts gemm loops conv norm softmax attention elementwise".split()
OPEN = "library", "interface", "problem"  # rooms and files of an operation that later operations may import from
ALONE = {
    "ipywidgets": {"views"},
    "anywidget": {"views"},
    "matplotlib": {"views"},
    "torch": {"bench", "nn"},
}
# Modules that import numba's compiler, for a GPU or in general, and why; besides these it is known in the rooms of
# COMPILERS alone, and in the files of instructions named `on_gpu`.
COMPILERS = "cuda", "calls"
KNOW_THE_COMPILER = {
    "machine/device.py": "finds the GPU, and stands below `cuda`",
    "ptx/intrinsics.py": "what all `on_gpu` files share",
    "ptx/tensor_copies/map_types.py": "the type of a tensor map, for its `on_gpu` file",
    "bench/simulator.py": "measures numba's own simulator",
    "simulator/random.py": "numba's random numbers",
    "simulator/seam/by_numba.py": "all else that the simulator takes from numba",
}
IMPORTS_A_COMPILER = re.compile(  # in a program that a module holds as a text, too
    r"^[ \t]*(?:from|import) numba\.(?:cuda|core)\b|^[ \t]*from numba import (?:.*\b)?(?:cuda|core)\b", re.M
)
STEP = re.compile(r"s\d\d_")
ALIKE = {"conv/fft"}  # whose later steps are the tiled one with other products around the same transforms
MODULES = sorted(PACKAGE.rglob("*.py"))


@cache
def imports(path):
    """Full names of what a module imports, inside functions too."""
    package = ["labkit", *path.relative_to(PACKAGE).parent.parts]
    names = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            origin = ".".join([*base, *filter(None, [node.module])])
            names += [f"{origin}.{alias.name}" for alias in node.names]
    return names


def room(path):
    """The first part of a module's name inside labkit."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def rooms_below(path):
    """The rooms of labkit that a module imports."""
    for name in imports(path):
        parts = name.split(".")
        if parts[0] == "labkit" and len(parts) > 1 and parts[1] in RANK:
            yield parts[1]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_a_module_imports_only_what_it_stands_on(path):
    if path == PACKAGE / "__init__.py":
        assert not list(rooms_below(path))
        return
    assert room(path) in RANK, f"give {room(path)} a layer in this test and in the design"
    above = [other for other in rooms_below(path) if RANK[other] > RANK[room(path)]]
    assert not above, f"{path.name} imports {above}, which stand above it"
    for name in imports(path):
        allowed = ALONE.get(name.split(".")[0])
        assert allowed is None or room(path) in allowed, f"{path.name} imports {name}"


def test_the_simulators_modules_stand_on_earlier_ones():
    for path in (PACKAGE / "simulator").rglob("*.py"):
        own = path.relative_to(PACKAGE / "simulator").with_suffix("").parts[0]
        if own == "__init__":
            continue
        assert own in RANK_IN_SIMULATOR, f"give simulator/{own} a place in SIMULATOR"
        names = (name.split(".") for name in imports(path) if name.startswith("labkit.simulator."))
        above = {parts[2] for parts in names if RANK_IN_SIMULATOR[parts[2]] > RANK_IN_SIMULATOR[own]}
        assert not above, f"{path.name} imports {above}, which stand above it"


def test_no_modules_import_one_another_in_a_circle():
    graph = {}
    for path in MODULES:
        names = (name for name in imports(path) if name.startswith("labkit."))
        graph[path] = {module_file(PACKAGE.parent, *name.split(".")) for name in names} - {
            path,
            PACKAGE / "__init__.py",
        }
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"a circle: {' <- '.join(map(str, error.args[1]))}")


@pytest.mark.parametrize("path", [path for path in MODULES if STEP.match(path.stem)], ids=lambda path: path.stem)
def test_a_step_imports_from_no_other_step(path):
    """It can be read alone; what steps share has a file of its own."""
    steps = [name for name in imports(path) if any(STEP.match(part) for part in name.split("."))]
    assert not steps or path.parent.relative_to(PACKAGE).as_posix() in ALIKE, f"{path.name} imports {steps}"


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_uses_the_open_rooms_of_others(operation):
    """Its package's names, `library`, `interface` and `problem`; a part of a kernel that two need is in `parts`."""
    for path in (PACKAGE / operation).rglob("*.py"):
        for name in imports(path):
            _, other, inner = [*name.split("."), "", ""][:3]
            if name.startswith("labkit.") and other in OPERATIONS and other != operation:
                closed = inner and (PACKAGE / other / inner).is_dir() or (PACKAGE / other / f"{inner}.py").is_file()
                assert inner in OPEN or not closed, f"{path.name} imports {name}"


def test_few_modules_know_the_compiler():
    """Its versions, and another compiler, then concern these alone."""
    found = {path for path in MODULES if IMPORTS_A_COMPILER.search(path.read_text(encoding="utf-8"))}
    named = {path.relative_to(PACKAGE).as_posix() for path in found if room(path) not in COMPILERS}
    assert {name for name in named if not name.endswith("/on_gpu.py")} == {*KNOW_THE_COMPILER}


def test_the_simulator_needs_numpy_and_numba_alone():
    known = {*sys.stdlib_module_names, "labkit", "numpy", "numba", "jaxtyping"}
    for path in (PACKAGE / "simulator").rglob("*.py"):
        strangers = {name.split(".")[0] for name in imports(path)} - known
        assert not strangers, f"{path.name} imports {strangers}"


def test_the_simulator_takes_numba_from_its_seam_alone():
    """So it runs where numba is not installed; only `random` hands on kernels that numba wrote."""
    seam = PACKAGE / "simulator" / "seam" / "by_numba.py", PACKAGE / "simulator" / "random.py"
    on_lanes = (path for path in (PACKAGE / "ptx").rglob("*.py") if path.stem in ("on_lanes", "findings", "__init__"))
    for path in {*(PACKAGE / "simulator").rglob("*.py"), *on_lanes} - {*seam}:
        assert not [name for name in imports(path) if name.split(".")[0] == "numba"], f"{path} imports numba"


def test_the_simulator_knows_no_instruction_by_its_name():
    """What it does and waits for stands with the instruction, in `labkit/ptx`."""
    names = {name for name in ptx.__all__ if hasattr(getattr(ptx, name), "needs")}
    names -= {"shared_array", *dir(math)}  # the translator's method for `cuda.shared.array`, and functions of `math`
    for path in (PACKAGE / "simulator").rglob("*.py"):
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        lists = [{word.removeprefix("ptx.") for word in text.split()} for text in texts]
        known = [words for words in lists if words and words <= names]
        assert not known, f"{path.name} names {known}"


def test_the_environment_is_made_with_the_standard_library_alone():
    for name in ("setup/environment.py", "places.py"):
        assert {n.split(".")[0] for n in imports(PACKAGE / name)} <= {*sys.stdlib_module_names, "labkit"}
