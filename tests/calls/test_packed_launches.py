"""How launches are packed for the driver: what it reads, which addresses are replaced, when a graph is recorded."""

import ctypes
import re
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from gemm_calls import CALLS, operands_of

from calls.every_call import CALLS as EVERY_CALL
from labkit import ptx
from labkit.arrays.views import OperandSlot, View, as_strided
from labkit.arrays.workspace import CountingWorkspace
from labkit.attention.interface import cached
from labkit.gemm.interface.product import Product
from labkit.ladder import Launch


@pytest.fixture
def packed(monkeypatch):
    """`labkit.cuda.packed` with a driver that keeps the parameters of what it is asked to launch."""
    pytest.importorskip("numba_cuda")
    from labkit.cuda import packed

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


def matrix(place):
    """An operand of three rows of eight numbers, with gaps between them."""
    return View(OperandSlot(place), (3, 8), (64, 4), np.dtype(np.float32), 4096 * (place + 1))


@pytest.mark.needs("numba-cuda")
def test_arguments_lie_as_a_kernel_of_numba_reads_them(packed):
    from numba.cuda import types

    array = types.Array(types.float32, 2, "A")
    pair = types.BaseTuple.from_types((types.int32, array), tuple)
    kernel = compiled(array, types.float32, pair, types.boolean, types.int64)
    operand = matrix(0)
    part = as_strided(operand, (2, 4), (64, 4), begin_byte=64 + 16)
    one = packed.PackedLaunch(
        kernel, (7, 2), 96, (operand, np.float32(0.5), (np.int32(-3), part), True, 11), 512, early=True
    )
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
    assert [array.owner for array, _ in one.cells] == [OperandSlot(0)] * 2


@pytest.mark.needs("numba-cuda")
def test_addresses_of_operands_and_of_the_workspace_come_to_their_places(packed, monkeypatch):
    from numba.cuda import types

    from labkit.calls import packed_launches
    from labkit.ptx.tensor_copies.map_types import TensorMapType

    array = types.Array(types.float32, 2, "A")
    moved = []
    monkeypatch.setattr(packed_launches, "move_map", lambda tensor_map, address: moved.append(address))
    monkeypatch.setattr(packed, "encode_map", lambda tensor_map: packed.binding.CUtensorMap())
    monkeypatch.setattr(packed_launches, "get_compiled", lambda dispatcher, arguments: compiled(*dispatcher.kinds))
    kernel = SimpleNamespace(kinds=(array, array), options={})
    by_map = SimpleNamespace(kinds=(TensorMapType(2), array, array, array), options={"early": True})
    unmoved = View(None, (3, 8), (32, 4), np.dtype(np.float32), 1 << 20)

    def launches(X, Y, workspace):
        boxed = SimpleNamespace(array=as_strided(Y, (3, 32), (128, 4), begin_byte=128), box=(1, 32), to_tf32=False)
        workspace.array("first", (100,), np.float32)
        parts, counters = workspace.array("second", (5, 4), np.float32), workspace.counters(4)
        counters = as_strided(counters, (2, 2), (8, 4))
        return [
            Launch(kernel, 1, 32, (as_strided(X, (1, 8), (64, 4), begin_byte=128), Y)),
            Launch(by_map, 1, 32, (boxed, unmoved, parts, counters)),
        ]

    run = packed_launches.PackedLaunches(launches, [matrix(0), matrix(1)])
    assert (run.counters_bytes, run.buffers_bytes, run.workspace_bytes) == (256, 512 + 256, 1024)
    word = [ctypes.c_int64] * 9

    def data():
        (_, first), (_, second) = packed.launched[-2:]
        of_first, of_second = words(first, word * 2), words(second, [ctypes.c_int64, *word * 3])
        return of_first[4], of_first[13], of_second[5], of_second[14], of_second[23]

    run.run(None, (4096, 8192), 5, (1 << 30, 1 << 31))
    assert data() == (4096 + 128, 8192, 1 << 20, (1 << 31) + 512, 1 << 30) and moved == [8192 + 128]
    run.run(None, (65536, 16384), 9, (1 << 30, 1 << 31))
    assert data() == (65536 + 128, 16384, 1 << 20, (1 << 31) + 512, 1 << 30) and moved[1:] == [16384 + 128]
    run.run(None, (65536, 16384), 9, (1 << 32, 1 << 33))
    assert data() == (65536 + 128, 16384, 1 << 20, (1 << 33) + 512, 1 << 32)
    assert {int(config.hStream) for config, _ in packed.launched[2:]} == {9}


@pytest.mark.needs("numba-cuda")
@pytest.mark.parametrize("count", [1, 3])
def test_several_launches_at_the_same_addresses_are_recorded_and_replayed(count, packed, monkeypatch):
    """Not before they have stayed for some runs, nor while the stream is captured itself."""
    from numba.cuda import types

    from labkit.calls import packed_launches

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
    monkeypatch.setattr(packed_launches, "Graph", Graph)
    monkeypatch.setattr(packed_launches, "may_replay", lambda handle: free[0])
    monkeypatch.setattr(packed_launches, "allow_during_capture", nullcontext)
    monkeypatch.setattr(packed_launches, "get_compiled", lambda dispatcher, arguments: compiled(array))
    kernel = SimpleNamespace(options={})
    launches = packed_launches.PackedLaunches(lambda X, workspace: [Launch(kernel, 1, 32, (X,))] * count, [matrix(0)])

    def run(address=4096, stream=9, memory=(0, 0)):
        launches.run(None, (address,), stream, memory)

    for _ in range(packed_launches.RUNS_BEFORE_GRAPH):
        run(stream=5)
    assert streams == [5] * packed_launches.RUNS_BEFORE_GRAPH * count and not recorded
    streams.clear()
    for _ in range(3):
        run()
    if count == 1:
        assert not recorded and streams == [9] * 3
        return
    assert recorded == [[77] * count] and replayed == [9] * 3 and not streams
    free[0] = False
    run()
    assert len(replayed) == 3 and streams == [9] * count
    free[0] = True
    run()
    assert len(recorded) == 1 and len(replayed) == 4
    run(8192)
    run(memory=(4096, 0))  # another workspace
    assert len(replayed) == 4 and streams == [9] * 3 * count
    run()
    assert len(recorded) == 1 and len(replayed) == 5
    for address in range(
        4096 * 3, 4096 * (3 + packed_launches.MAX_GRAPHS), 4096
    ):  # so many that the first is forgotten
        run(address)
    streams.clear()
    run()
    assert len(recorded) == 1 and len(replayed) == 5 and streams == [9] * count


@pytest.mark.needs("numba-cuda")
@pytest.mark.parametrize("call", [CALLS[1], CALLS[10]], ids=str)
def test_a_kernel_is_compiled_for_the_very_parameters_that_are_packed(call, packed, monkeypatch):
    """In parts of k, and with operands and result rearranged."""
    from numba.cuda.typing.typeof import typeof

    from labkit.cuda.compiling import ptx_text

    monkeypatch.setattr(packed, "encode_map", lambda tensor_map: packed.binding.CUtensorMap())
    of_numba = SimpleNamespace(typeof_pyval=typeof)
    for launch in product_of(call):
        kinds = tuple(packed._kind(of_numba, value) for value in launch.arguments)
        one = packed.PackedLaunch(compiled(*kinds), launch.grid, launch.block, launch.arguments)
        entry = ptx_text(launch.kernel, kinds, (9, 0, "a")).partition(".visible .entry")[2].partition(")")[0]
        of_maps = [int(size) for size in re.findall(r"\.b8 \S+\[(\d+)\]", entry)]
        of_others = [int(bits) // 8 for bits in re.findall(r"\.param \.[a-z](\d\d) ", entry)]
        sizes = [ctypes.sizeof(buffer) for buffer in one._buffers]
        assert of_maps == [packed.MAP_BYTES] * len(one.maps)
        assert of_others == [size for size in sizes if size <= 8]


def arrays_in(argument):
    if isinstance(argument, tuple):
        return [array for each in argument for array in arrays_in(each)]
    if isinstance(argument, ptx.TensorMap | ptx.PixelMap):
        return [argument.array]
    return [argument] if hasattr(argument, "shape") and argument.shape else []


def launches_of(operation, arrays):
    """The launches of an operation for arrays of the host, as if they were of the device, and nowhere."""
    given = dict(zip(operation.arrays, map(arrays.get, operation.arrays)))
    given = {name: X for name, X in given.items() if X is not None}
    views = {
        name: View(OperandSlot(n), X.shape, X.strides, X.dtype, 4096 * (n + 1))
        for n, (name, X) in enumerate(given.items())
    }
    return operation.with_format(given).launches(views, CountingWorkspace(first_slot=len(given)))


def product_of(call):
    """The launches of a product."""
    return launches_of(Product(**call.options), dict(zip("ABC", operands_of(call, 0))))


def owners_of(launches):
    """Of all arrays but those that stand for a parameter which a kernel does not touch."""
    arrays = [array for launch in launches for array in arrays_in(launch.arguments)]
    return {array.owner for array in arrays if array.address}


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_every_array_of_a_product_is_known_as_a_part_of_an_operand_or_of_the_workspace(call):
    """Else another one could not be put in its place."""
    owners = owners_of(product_of(call))
    assert owners - {OperandSlot(3), OperandSlot(4)} == (
        {OperandSlot(0), OperandSlot(1), OperandSlot(2)} if call.shape[2] else {OperandSlot(2)}
    )


@pytest.mark.parametrize("call", EVERY_CALL, ids=str)
def test_every_array_of_a_call_is_known_as_a_part_of_an_operand_or_of_the_workspace(call, monkeypatch):
    arrays = call.arrays()
    arrays |= dict(zip(call.outputs, call.run(arrays), strict=True))
    monkeypatch.setattr(cached, "index_array", lambda count: View("numbers", (count,), (4,), np.dtype(np.int32), 4096))
    names = [name for name in call.operation.arrays if name in arrays]
    owners = owners_of(launches_of(call.operation(**call.options), arrays))
    assert {OperandSlot(names.index(name)) for name in call.outputs} <= owners
    assert owners - {"numbers"} <= {OperandSlot(n) for n in range(len(arrays) + 2)}
