"""What programs ask of a kernel and find under `cuda` besides kernels: numba's names, answered or refused."""

import pytest
from numba import types
from programs import HEADER, run

from labkit import cuda
from labkit.cuda.inspection import OF_COMPILER
from labkit.simulator.errors import LaunchError

# Public names of numba-cuda 0.30's dispatcher, and of its compiled kernels.
DISPATCHER = """add_overload call compile compile_device configure disable_compile dump enable_caching extensions
    fold_argument_types forall get_annotation_info get_call_template get_compile_result get_const_mem_size
    get_function_type get_local_mem_per_thread get_max_threads_per_block get_metadata get_overload
    get_regs_per_thread get_shared_mem_per_block inspect_asm inspect_cfg inspect_disasm_cfg inspect_llvm
    inspect_lto_ptx inspect_sass inspect_sass_cfg inspect_types is_compiling mark_launch_config_sensitive
    nopython_signatures recompile signatures specialize specialized stats targetdescr typeof_pyval""".split()
COMPILED = """NRT_functions argument_types bind codegen const_mem_size initialize_once inspect_asm inspect_llvm
    inspect_lto_ptx inspect_sass inspect_sass_cfg inspect_types launch library local_mem_per_thread
    max_cooperative_grid_blocks max_threads_per_block maybe_link_nrt regs_per_thread shared_mem_per_block
    type_annotation""".split()

QUESTIONS = """
TABLE = np.arange(4, dtype=np.float32)

@cuda.jit
def k(x):
    s = cuda.shared.array(32, cuda.float32)
    table = cuda.const.array_like(TABLE)
    t = cuda.threadIdx.x
    s[t] = table[t % 4]
    x[t] = cuda.float32(1) + s[t] * cuda.int32(2.5)

print(k.get_shared_mem_per_block())
k[1, 32](np.zeros(32, np.float32))
key = (cuda.float32[::1],)
print(k.get_shared_mem_per_block() == {key: 128}, k.get_const_mem_size()[key], k.get_max_threads_per_block()[key])
print(k.overloads[key].shared_mem_per_block, k.specialized, k.nopython_signatures == [key])
k.inspect_types()
"""


def test_what_the_simulator_knows_is_answered(tmp_path):
    result = run(tmp_path, HEADER + QUESTIONS)
    first, *lines = result.stdout.splitlines()
    assert first == "{}", result.stderr
    assert lines[:3] == ["True 16 1024", "128 False True", "k (array(float32, 1d, C))"]
    assert "    t: int32" in lines
    assert result.returncode == 0


@pytest.mark.parametrize("question", ["get_regs_per_thread()", "inspect_asm()", "stats.cache_hits", "inspect_sass()"])
def test_what_only_machine_code_tells_is_refused_in_a_sentence(tmp_path, question):
    program = f"""
@cuda.jit
def k(x):
    x[0] = 1

k[1, 1](np.zeros(1))
k.{question}
"""
    result = run(tmp_path, HEADER + program)
    assert result.returncode == 1
    name = question.split("(")[0].split(".")[0]
    assert f"LaunchError: `k.{name}` needs machine code, which the simulator does not make" in result.stderr
    assert "AttributeError" not in result.stderr


@cuda.jit("void(float32[:])")
def declared(x):
    x[0] = 1


def test_no_name_of_numbas_dispatcher_is_missing():
    for name in DISPATCHER:
        assert getattr(declared, name) is not None
    for name in COMPILED:
        assert getattr(declared.overloads[(types.float32[:],)], name) is not None
    with pytest.raises(AttributeError, match="no attribute 'inspect_everything'"):
        declared.inspect_everything  # noqa: B018


@pytest.mark.parametrize("name", sorted(OF_COMPILER))
def test_a_refused_name_gives_no_value(name):
    value = getattr(declared, name)
    for use in (value.__call__, lambda: value.field, lambda: value > 1, lambda: f"{value}", lambda: value["a"]):
        with pytest.raises(LaunchError, match=f"`declared.{name}` needs machine code"):
            use()


def test_a_declared_kernel_answers_with_a_number():
    assert declared.specialized
    assert declared.get_shared_mem_per_block() == 0
    assert declared.get_max_threads_per_block(types.void(types.float32[:])) == 1024


def test_a_kernel_compiles_for_a_signature_and_anew_with_other_globals(tmp_path):
    program = """
FACTOR = 2

@cuda.jit
def scale(x):
    x[cuda.grid(1)] *= FACTOR

print(scale.compile("void(int64[:])").argument_types, list(scale.overloads))
x = np.ones(1, np.int64)
for FACTOR in 2, 3:
    scale[1, 1](x)
    scale.recompile()
print(x)
"""
    result = run(tmp_path, HEADER + program)
    types_of_x = "Array(int64, 1, 'A', False, aligned=True)"
    assert result.stdout.splitlines() == [f"({types_of_x},) [({types_of_x},)]", "[6]"], result.stderr


@pytest.mark.parametrize("name", ["float32", "f4", "int16", "double", "boolean", "uintp", "complex64", "bool"])
def test_types_are_names_of_cuda(tmp_path, name):
    program = f"""
@cuda.jit(cuda.void(cuda.{name}[:], cuda.float64))
def k(x, value):
    i = cuda.grid(1)
    s = cuda.local.array(1, cuda.{name})
    s[0] = cuda.{name}(value)
    x[i] = s[0]

from numba import types
from numba.np.numpy_support import as_dtype
x = np.zeros(32, as_dtype(cuda.{name}))
k[1, 32](x, 2.5)
print(cuda.{name} is types.{name}, (x == x.dtype.type(2.5)).all())
"""
    result = run(tmp_path, HEADER + program)
    assert result.stdout == "True True\n", result.stderr


def test_submodules_are_there_without_an_import_of_their_own(tmp_path):
    program = """
from numba.cuda import compile_ptx

@cuda.jit
def k(x):
    x[0] = cuda.types.float32(1.5)

x = np.zeros(1, cuda.types.float32.name)
k[1, 1](x)
print(x, cuda.cudadrv.devicearray.is_cuda_ndarray(cuda.to_device(x)))
compile_ptx(k, ())
"""
    result = run(tmp_path, HEADER + program)
    assert result.stdout == "[1.5] True\n", result.stderr
    assert "labkit's simulator has nothing in place of numba.cuda.compile_ptx" in result.stderr
