"""Plans: run again, also for other operands that lie alike, with memory of their own; and how launches are packed."""

import ctypes
import re
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from gemm_calls import CALLS, operands_of

from labkit import cuda, gemm, ptx
from labkit.arrays.views import View, viewed
from labkit.arrays.workspace import Workspace
from labkit.formats import format_named
from labkit.gemm.interface import product
from labkit.planned import Place

pytestmark = pytest.mark.filterwarnings("error::labkit.cuda.FindingWarning")


def on_device(*arrays):
    return [cuda.to_device(X) for X in arrays]


def right(C, *factors):
    return np.allclose(C.copy_to_host(), np.matmul(*(X.copy_to_host() for X in factors)), rtol=1e-4, atol=1e-4)


def random(*shape, dtype=np.float32):
    return np.random.default_rng(shape).standard_normal(shape).astype(dtype)


def test_a_plan_runs_for_what_its_operands_hold_then():
    A, B, C = on_device(random(9, 12), random(12, 8), np.zeros((9, 8), np.float32))
    plan = gemm.plan(A, B, C)
    assert (C.copy_to_host() == 0).all()
    plan()
    assert right(C, A, B)
    A.copy_to_device(random(9, 12) + 1)
    plan()
    assert right(C, A, B)


@pytest.mark.parametrize("options", [{}, {"alpha": 2.0, "beta": 1.0}], ids=["one launch", "several"])
def test_a_plan_runs_for_other_operands_that_lie_alike(options):
    """Parts of larger arrays, whose offsets differ."""
    A, B, C = on_device(random(40, 16), random(16, 12), np.zeros((40, 12), np.float32))
    plan = gemm.plan(A[:9], B, C[:9], **options)
    for top in (20, 0, 31):
        before = C.copy_to_host()
        plan(A[top : top + 9], B, C[top : top + 9])
        expected = options.get("alpha", 1) * (A.copy_to_host()[top : top + 9] @ B.copy_to_host())
        expected += options.get("beta", 0) * before[top : top + 9]
        assert np.allclose(C.copy_to_host()[top : top + 9], expected, rtol=1e-4, atol=1e-4)
        changed = (C.copy_to_host() != before).any(axis=1)
        assert changed[top : top + 9].all() and changed.sum() == 9
    A[31:40].copy_to_device(random(9, 16))
    plan()  # the last ones again
    assert options or right(C[31:40], A[31:40], B)


def test_a_plan_keeps_its_operands_alive():
    A, B, C = random(4, 4), random(4, 4), cuda.to_device(np.zeros((4, 4), np.float32))
    plan = gemm.plan(cuda.to_device(A), cuda.to_device(B), C)
    others = on_device(*(np.full((4, 4), np.nan, np.float32) for _ in range(8)))  # where freed ones would have been
    plan()
    assert len(others) == 8 and np.allclose(C.copy_to_host(), A @ B, atol=1e-5)


def test_a_plan_takes_memory_of_its_own_once(monkeypatch):
    made = []
    array = Workspace.array
    monkeypatch.setattr(Workspace, "array", lambda self, *of: made.append(self) or array(self, *of))
    operands = on_device(random(9, 13), random(13, 7), np.zeros((9, 7), np.float32))
    options = {"candidate": candidate("tuned"), "alpha": 2.0}
    one, other = product.planned(*operands, **options), product.planned(*operands, **options)
    assert len({id(workspace) for workspace in made}) == 2
    size = [workspace.size_bytes for workspace in (made[0], made[-1])]
    one(), other(), one()
    assert size == [workspace.size_bytes for workspace in (made[0], made[-1])]


def candidate(step, **cut):
    from labkit.gemm.interface.candidates import Candidate

    return Candidate(step, **cut)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (lambda X: X[:7], "A is of shape (7, 16), and the plan is for (8, 16)"),
        (lambda X: X[::2], "A has strides (128, 4), and the plan is for (64, 4)"),
        (lambda X: cuda.to_device(np.zeros((8, 16), np.int32)), "A holds int32, and the plan is for float32"),
        (lambda X: viewed(X, (8, 16), (64, 4), begin_byte=4), "A begins 4 bytes after a multiple of 16"),
        (lambda X: np.zeros((8, 16), np.float32), "A is an array of the host"),
        (lambda X: [1.0], "A is a list, not an array"),
    ],
)
def test_operands_that_lie_in_another_way_are_refused_in_a_sentence(other, words):
    X, B, C = on_device(random(16, 16), random(16, 4), np.zeros((8, 4), np.float32))
    plan = gemm.plan(X[:8], B, C)
    plan(X[4:12], B, C)
    with pytest.raises((TypeError, ValueError)) as raised:
        plan(other(X), B, C)
    assert words in str(raised.value) and "\n" not in str(raised.value)
    with pytest.raises(TypeError, match="takes A, B, C, or nothing, and got 1"):
        plan(X)
    plan()
    assert right(C, X[4:12], B)


def test_a_result_that_shares_memory_is_refused_each_time():
    whole, B = on_device(np.ones((8, 24), np.float32), np.ones((8, 8), np.float32))
    plan = gemm.plan(whole[:, :8], B, whole[:, 16:])
    plan(whole[:, 4:12], B, whole[:, 16:])
    with pytest.raises(ValueError, match="C shares memory with A"):
        plan(whole[:, 12:20], B, whole[:, 16:])
    for _ in range(2):
        with pytest.raises(ValueError, match="C shares memory with A"):
            gemm.multiply(whole[:, 12:20], B, whole[:, 16:])
        gemm.multiply(whole[:, 8:16], B, whole[:, 16:])


def test_multiply_remembers_what_it_planned_by_layout(monkeypatch):
    product.forget()
    made = []
    planned = product.planned
    monkeypatch.setattr(product, "planned", lambda *of, **options: made.append(of) or planned(*of, **options))
    A, B, C = on_device(random(20, 8), random(8, 8), np.zeros((10, 8), np.float32))
    for top in (0, 10, 0):
        gemm.multiply(A[top : top + 10], B, C)
        assert right(C, A[top : top + 10], B)
    assert len(made) == 1
    for options in ({"alpha": 2.0}, {"transpose_b": True}, {"format": "tf32"}, {"alpha": 2.0}, {}):
        gemm.multiply(A[:10], B, C, **options)
    assert len(made) == 4
    monkeypatch.setattr(product._remembered, "most", 3)
    for rows in (4, 5, 6):
        gemm.multiply(A[:rows], B, C[:rows])
    assert len(made) == 7 and len(product._remembered) <= 4
    gemm.multiply(A[:10], B, C)
    assert len(made) == 8 and right(C, A[:10], B)
    product.forget()


def test_multiply_remembers_what_it_planned_for_a_factor_that_is_no_number(monkeypatch):
    product.forget()
    made, planned = [], product.planned
    monkeypatch.setattr(product, "planned", lambda *of, **options: made.append(of) or planned(*of, **options))
    A, B, C = on_device(random(8, 8), random(8, 8), np.zeros((8, 8), np.float32))
    for _ in range(3):
        gemm.multiply(A, B, C, alpha=float("nan"))
        assert np.isnan(C.copy_to_host()).all()
    assert len(made) == 1
    gemm.multiply(A, B, C, beta=float("nan"))
    assert len(made) == 2 and np.isnan(C.copy_to_host()).all()
    gemm.multiply(A, B, C)
    assert len(made) == 3 and right(C, A, B)
    product.forget()


def test_a_factor_that_only_equals_one_is_still_refused():
    operands = on_device(random(4, 4), random(4, 4), np.zeros((4, 4), np.float32))
    gemm.multiply(*operands)
    with pytest.raises(TypeError, match="alpha is a complex"):
        gemm.multiply(*operands, alpha=1 + 0j)


# --- how launches are packed ---------------------------------------------------------------------


@pytest.fixture
def packed(monkeypatch):
    """`labkit.packed` with a driver that keeps the parameters of what it is asked to launch."""
    pytest.importorskip("numba_cuda")
    from labkit import packed

    launched = []

    def launch(config, function, parameters, extra):
        launched.append((config, parameters))
        return (packed.SUCCESS,)

    monkeypatch.setattr(packed, "_launch", launch)
    packed.launched = launched
    return packed


def compiled(*kinds):
    """A kernel for these types, as much of it as is asked for."""
    from numba.cuda.dispatcher import _Kernel

    kernel = SimpleNamespace(argument_types=kinds, cooperative=False, extensions=[], py_func=compiled)
    kernel._prepare_args = lambda *of: _Kernel._prepare_args(kernel, *of)
    kernel._codelibrary = SimpleNamespace(get_cufunc=lambda: SimpleNamespace(handle=1234))
    return kernel


def words(parameters, kinds):
    """What the driver would read as parameters of these C types."""
    places = (ctypes.c_void_p * len(kinds)).from_address(parameters)
    return [kind.from_address(place).value for kind, place in zip(kinds, places, strict=True)]


OPERAND = View(Place(0), (3, 8), (64, 4), np.dtype(np.float32), 4096)


@pytest.mark.needs("numba-cuda")
def test_arguments_lie_as_a_kernel_of_numba_reads_them(packed):
    from numba.cuda import types

    array = types.Array(types.float32, 2, "A")
    pair = types.BaseTuple.from_types((types.int32, array), tuple)
    kernel = compiled(array, types.float32, pair, types.boolean, types.int64)
    part = viewed(OPERAND, (2, 4), (64, 4), begin_byte=64 + 16)
    one = packed.Packed(kernel, (7, 2), 96, (OPERAND, np.float32(0.5), (np.int32(-3), part), True, 11), 512, early=True)
    one.run()
    ((config, parameters),) = packed.launched
    word = ctypes.c_int64
    kinds = [*[word] * 9, ctypes.c_float, ctypes.c_int32, *[word] * 9, ctypes.c_bool, word]
    assert words(parameters, kinds) == [
        *(0, 0, 24, 4, 4096, 3, 8, 64, 4),
        *(0.5, -3),
        *(0, 0, 8, 4, 4096 + 80, 2, 4, 64, 4),
        *(True, 11),
    ]
    assert (config.gridDimX, config.gridDimY, config.gridDimZ) == (7, 2, 1)
    assert (config.blockDimX, config.blockDimY, config.blockDimZ) == (96, 1, 1)
    assert (config.sharedMemBytes, config.numAttrs) == (512, 1)
    assert [array.owner for array, _ in one.cells] == [Place(0)] * 2


@pytest.mark.needs("numba-cuda")
def test_a_plan_on_a_gpu_puts_addresses_in_their_places(packed, monkeypatch):
    from numba.cuda import types

    from labkit import planned

    array = types.Array(types.float32, 2, "A")
    moved = []
    monkeypatch.setattr(packed, "move", lambda tensor_map, address: moved.append(address))
    monkeypatch.setattr(packed, "encoded", lambda tensor_map: packed.binding.CUtensorMap())
    monkeypatch.setattr(packed, "compiled", lambda dispatcher, arguments: compiled(*dispatcher.kinds))
    beside = View(None, (3, 8), (32, 4), np.dtype(np.float32), 1 << 20)

    def launches(X, Y, workspace):
        from labkit.ptx.tensor_copies.on_gpu import TensorMapType

        kernel = SimpleNamespace(kinds=(array, array), targetoptions={})
        by_map = SimpleNamespace(kinds=(TensorMapType(2), array), targetoptions={"early": True})
        boxed = SimpleNamespace(array=viewed(Y, (3, 32), (128, 4), begin_byte=128), box=(1, 32), to_tf32=False)
        return [
            planned.Launch(kernel, 1, 32, (viewed(X, (1, 8), (64, 4), begin_byte=128), Y)),
            planned.Launch(by_map, 1, 32, (boxed, beside)),
        ]

    operands = [View(Place(n), (3, 8), (64, 4), np.dtype(np.float32), 4096 * (n + 1)) for n in range(2)]
    runs = planned._OnGpu(launches, operands, None, 5)
    runs(None, [4096, 8192], None)
    word = [ctypes.c_int64] * 9

    def data():
        (_, first), (_, second) = packed.launched[-2:]
        of_first = words(first, word * 2)
        return of_first[4], of_first[13], words(second, [ctypes.c_int64, *word])[5]

    assert data() == (4096 + 128, 8192, 1 << 20) and moved == []
    runs(None, [65536, 16384], 9)
    assert data() == (65536 + 128, 16384, 1 << 20) and moved == [16384 + 128]
    assert {int(config.hStream) for config, _ in packed.launched} == {9}


@pytest.mark.needs("numba-cuda")
@pytest.mark.parametrize("count", [1, 3])
def test_several_launches_at_the_same_addresses_are_recorded_and_replayed(count, packed, monkeypatch):
    """Not before they have stayed for some runs, nor while the stream is captured itself."""
    from numba.cuda import types

    from labkit import graphs, planned

    array, streams, replayed, recorded, free = types.Array(types.float32, 2, "A"), [], [], [], [True]

    class Graph:
        def __init__(self, launch):
            begin = len(streams)
            launch(77)
            recorded.append(streams[begin:])
            del streams[begin:]

        def run(self, handle):
            replayed.append(handle)

    monkeypatch.setattr(packed, "_launch", lambda config, *_: streams.append(int(config.hStream)) or (packed.SUCCESS,))
    monkeypatch.setattr(graphs, "Graph", Graph)
    monkeypatch.setattr(graphs, "may_replay", lambda handle: free[0])
    monkeypatch.setattr(planned, "even_while_captured", nullcontext)
    monkeypatch.setattr(packed, "compiled", lambda dispatcher, arguments: compiled(array))
    kernel = SimpleNamespace(targetoptions={})
    operands = [View(Place(0), (3, 8), (64, 4), np.dtype(np.float32), 4096)]
    runs = planned._OnGpu(lambda X, workspace: [planned.Launch(kernel, 1, 32, (X,))] * count, operands, None, 5)
    for _ in range(planned.RUNS_BEFORE_GRAPH):
        runs(None, [4096], None)
    assert streams == [5] * planned.RUNS_BEFORE_GRAPH * count and not recorded
    streams.clear()
    for _ in range(3):
        runs(None, [4096], 9)
    if count == 1:
        assert not recorded and streams == [9] * 3
        return
    assert recorded == [[77] * count] and replayed == [9] * 3 and not streams
    free[0] = False
    runs(None, [4096], None)
    assert len(replayed) == 3 and streams == [9] * count
    free[0] = True
    runs(None, [4096], None)
    assert len(recorded) == 1 and len(replayed) == 4
    runs(None, [8192], None)
    runs(None, [4096], None)
    assert len(recorded) == 1 and len(replayed) == 5 and streams == [9] * 2 * count
    for address in range(4096 * 3, 4096 * (3 + planned.MOST_GRAPHS), 4096):  # so many that the first is forgotten
        runs(None, [address], None)
    streams.clear()
    runs(None, [4096], None)
    assert len(recorded) == 1 and len(replayed) == 5 and streams == [9] * count


@pytest.mark.needs("numba-cuda")
@pytest.mark.parametrize("call", [CALLS[1], CALLS[10]], ids=str)
def test_a_kernel_is_compiled_for_the_very_parameters_that_are_packed(call, packed, monkeypatch):
    """In parts of k, and with operands and result rearranged."""
    from numba.cuda.typing.typeof import typeof

    from labkit.compiler import ptx_text

    monkeypatch.setattr(packed, "encoded", lambda tensor_map: packed.binding.CUtensorMap())
    of_numba = SimpleNamespace(typeof_pyval=typeof)
    for launch in launches_of(call):
        kinds = tuple(packed._kind(of_numba, value) for value in launch.arguments)
        one = packed.Packed(compiled(*kinds), launch.grid, launch.block, launch.arguments)
        entry = ptx_text(launch.kernel, kinds, (9, 0, "a")).partition(".visible .entry")[2].partition(")")[0]
        of_maps = [int(size) for size in re.findall(r"\.b8 \S+\[(\d+)\]", entry)]
        of_others = [int(bits) // 8 for bits in re.findall(r"\.param \.[a-z](\d\d) ", entry)]
        sizes = [ctypes.sizeof(kept) for kept in one._kept]
        assert of_maps == [packed.MAP_BYTES] * len(one.maps)
        assert of_others == [size for size in sizes if size <= 8]


class Piece(View):
    """Memory of a workspace, which is nowhere."""

    size = property(lambda self: self.shape[0])


def nowhere(size, dtype=np.uint8):
    size = size if isinstance(size, int) else size.size
    return Piece("workspace", (size,), (1,), np.dtype(dtype), 1 << 40)


def arrays_in(argument):
    if isinstance(argument, tuple):
        return [array for each in argument for array in arrays_in(each)]
    if isinstance(argument, ptx.TensorMap):
        return [argument.array]
    return [argument] if hasattr(argument, "shape") and argument.shape else []


def launches_of(call):
    """The launches of a call, for operands that are nowhere."""
    format, arrays = format_named(call.format), operands_of(call, 0)
    views = [View(Place(n), X.shape, X.strides, X.dtype, 4096 * (n + 1)) for n, X in enumerate(arrays)]
    workspace = Workspace(memory=SimpleNamespace(device_array=nowhere, to_device=nowhere))
    options = {"alpha": 1.0, "beta": 0.0, "transpose_a": False, "transpose_b": False, "candidate": None}
    return product._launches(*views, **{**options, **call.options, "format": format}, workspace=workspace)


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_every_array_that_is_launched_is_known_as_a_part_of_an_operand_or_of_the_workspace(call):
    """Else another one could not be put in its place."""
    owners = {array.owner for launch in launches_of(call) for array in arrays_in(launch.arguments)}
    assert owners - {"workspace"} == ({Place(0), Place(1), Place(2)} if call.shape[2] else {Place(2)})


# --- on a GPU ------------------------------------------------------------------------------------


@pytest.mark.needs("gpu")
@pytest.mark.parametrize("call", CALLS, ids=str)
def test_a_plan_gives_the_very_bits_of_multiply_also_for_other_operands_and_in_a_graph_of_another_stream(call):
    first, second = operands_of(call, seed=0), operands_of(call, seed=1)
    expected = []
    for A, B, C in (first, second):
        result = cuda.to_device(C)
        gemm.multiply(*on_device(A, B), result, **call.options)
        expected.append(result.copy_to_host())
    A, B, C = on_device(*first)
    plan = gemm.plan(A, B, C, **call.options)
    plan()
    cuda.synchronize()
    assert (C.copy_to_host() == expected[0]).all()
    others = on_device(*second)
    plan(*others)
    cuda.synchronize()
    assert (others[2].copy_to_host() == expected[1]).all()
    others[2].copy_to_device(second[2])
    stream = cuda.stream()
    replay = captured(stream, lambda: plan(stream=stream))
    assert (others[2].copy_to_host() == second[2]).all() or not call.options.get("beta")
    replay()
    stream.synchronize()
    assert (others[2].copy_to_host() == expected[1]).all()


@pytest.mark.needs("gpu")
def test_a_plan_that_was_recorded_gives_the_same_bits_elsewhere_and_while_it_is_captured():
    first, second = (list(map(np.asarray, operands_of(CALLS[10], seed))) for seed in (0, 1))
    expected = []
    for A, B, C in (first, second):
        result = cuda.to_device(C)
        gemm.multiply(*on_device(A, B), result, **{**CALLS[10].options, "beta": 0.0})
        expected.append(result.copy_to_host())
    one, other = on_device(*first), on_device(*second)
    plan = gemm.plan(*one, **{**CALLS[10].options, "beta": 0.0})
    for arrays, right_bits in ((one, expected[0]), (other, expected[1]), (one, expected[0])):
        for _ in range(30):
            plan(*arrays)
        cuda.synchronize()
        assert (arrays[2].copy_to_host() == right_bits).all()
    one[2].copy_to_device(first[2])
    stream = cuda.stream()
    replay = captured(stream, lambda: plan(stream=stream))
    replay()
    stream.synchronize()
    assert (one[2].copy_to_host() == expected[0]).all()


@pytest.mark.needs("gpu")
@pytest.mark.parametrize("call", CALLS, ids=str)
def test_multiply_is_captured_from_a_stream_that_it_never_ran_on(call):
    A, B, C = operands_of(call, seed=2)
    result = cuda.to_device(C)
    gemm.multiply(*on_device(A, B), result, **call.options)
    expected = result.copy_to_host()
    operands, stream = on_device(A, B, C), cuda.stream()
    replay = captured(stream, lambda: gemm.multiply(*operands, **call.options, stream=stream))
    replay()
    stream.synchronize()
    assert (operands[2].copy_to_host() == expected).all()


def captured(stream, launch):
    """A function that replays what was launched on the stream."""
    from numba.cuda.cudadrv.driver import binding, driver

    handle = binding.CUstream(int(stream.handle))
    driver.cuStreamBeginCapture(handle, binding.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL)
    launch()
    executable = driver.cuGraphInstantiate(driver.cuStreamEndCapture(handle), 0)
    return lambda: driver.cuGraphLaunch(executable, handle)


@pytest.mark.needs("gpu")
@pytest.mark.needs("torch")
def test_tensors_of_torch_are_taken_as_they_are():
    import torch

    A, B = (torch.randn(64, 64, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    C = torch.empty(64, 64, device="cuda", dtype=torch.bfloat16)
    assert gemm.multiply(A, B, C, transpose_b=True) is C
    assert torch.allclose(C, A @ B.T, rtol=2e-2, atol=0.1)
    plan = gemm.plan(A, B, C, transpose_b=True)
    plan(2 * A, B, C)
    torch.cuda.synchronize()
    assert torch.allclose(C, 2 * A @ B.T, rtol=2e-2, atol=0.2)
    X, Y = (torch.randn(64, 64, device="cuda").to(torch.float8_e4m3fn) for _ in range(2))
    gemm.multiply(X, Y, C, transpose_b=True)
    assert torch.allclose(C.float(), X.float() @ Y.float().T, rtol=2e-2, atol=0.1)
    with pytest.raises(TypeError, match="may be bits of anything"):
        gemm.multiply(X.view(torch.uint8), Y.view(torch.uint8), C)
