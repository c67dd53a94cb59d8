"""cuDNN's own convolutions as contenders of a bench: the fastest that its search finds, which torch may not choose.

The library is the one that torch brings, called through ctypes. (NVIDIA cuDNN, Backend and Legacy API, "cudnn_cnn".)
"""

import ctypes
from collections.abc import Callable
from ctypes import byref, c_float, c_int, c_size_t, c_void_p
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from labkit import cuda
from labkit.arrays.addresses import address_of
from labkit.conv.problem import BackwardData, BackwardFilter, Convolution, Forward
from labkit.formats import BF16, FP16, FP32, Format

CUDNN_TYPES = {FP32: 0, FP16: 2, BF16: 9}
CUDNN_LAYOUTS = {"NCHW": 0, "NHWC": 1}
FMA_MATH, TENSOR_MATH = 3, 1
PASS_NAMES = {"y": "Forward", "x": "BackwardData", "w": "BackwardFilter"}
MAX_RESULTS = 16
# As cudnnConvolutionFwdAlgo_t, BwdDataAlgo_t and BwdFilterAlgo_t count them.
ALGORITHMS = {
    "y": (
        "implicit GEMM",
        "implicit precomputed GEMM",
        "GEMM",
        "direct",
        "FFT",
        "tiled FFT",
        "Winograd",
        "non-fused Winograd",
    ),
    "x": ("algorithm 0", "algorithm 1", "FFT", "tiled FFT", "Winograd", "non-fused Winograd"),
    "w": ("algorithm 0", "algorithm 1", "FFT", "algorithm 3", "Winograd", "non-fused Winograd", "tiled FFT"),
}
ONE, ZERO = byref(c_float(1)), byref(c_float(0))


class _SearchResult(ctypes.Structure):
    """The search's result for an algorithm (cudnnConvolutionFwdAlgoPerf_t, and those of the other passes)."""

    _fields_ = (
        ("algorithm", c_int),
        ("status", c_int),
        ("time_ms", c_float),
        ("memory", c_size_t),
        ("determinism", c_int),
        ("math", c_int),
        ("reserved", c_int * 3),
    )


@dataclass(frozen=True)
class Best:
    """The fastest algorithm of cuDNN's search for a problem; `launch(stream, x, w, y)` runs it."""

    algorithm: int
    workspace_bytes: int
    launch: Callable


@cache
def _library():
    import torch  # noqa: F401, which loads it
    from nvidia import cudnn  # of torch's wheels

    return ctypes.CDLL(next(Path(next(iter(cudnn.__path__))).glob("lib/libcudnn.so.*")))


def _call(name, *arguments):
    status = getattr(_library(), f"cudnn{name}")(*arguments)
    if status:
        raise RuntimeError(f"cudnn{name} ended with status {status}: see cudnnStatus_t")


def _make_descriptor(kind):
    descriptor = c_void_p()
    _call(f"Create{kind}Descriptor", byref(descriptor))
    return descriptor


@cache
def _handle():
    handle = c_void_p()
    _call("Create", byref(handle))
    return handle


def supports(problem: Convolution) -> bool:
    """Say if cuDNN supports a problem: its padding must be symmetric."""
    return problem.top == problem.bottom and problem.left == problem.right


@cache
def find_best(problem: Convolution, format: Format) -> Best:
    """Return the fastest algorithm that the search finds, with its workspace; float32 is computed without TF32."""
    tensors, dtype, layout = {}, CUDNN_TYPES[format], CUDNN_LAYOUTS[problem.layout]
    for name, shape in problem.shapes.items():
        N, C, H, W = shape if problem.layout == "NCHW" else (shape[0], shape[3], shape[1], shape[2])
        if name == "w":
            tensors[name] = _make_descriptor("Filter")
            _call("SetFilter4dDescriptor", tensors[name], dtype, layout, N, C, H, W)
        else:
            tensors[name] = _make_descriptor("Tensor")
            _call("SetTensor4dDescriptor", tensors[name], layout, dtype, N, C, H, W)
    convolution = _make_descriptor("Convolution")
    sizes = problem.top, problem.left, problem.stride_h, problem.stride_w, problem.dilation_h, problem.dilation_w
    _call("SetConvolution2dDescriptor", convolution, *sizes, int(not problem.flipped), CUDNN_TYPES[FP32])
    _call("SetConvolutionGroupCount", convolution, problem.groups)
    _call("SetConvolutionMathType", convolution, FMA_MATH if format == FP32 else TENSOR_MATH)
    inputs = {"y": "xw", "x": "wy", "w": "xy"}[problem.result]
    results, count = (_SearchResult * MAX_RESULTS)(), c_int()
    kind = PASS_NAMES[problem.result]  # as in the names of cuDNN's functions
    _call("SetStream", _handle(), None)  # the last launch's stream may be gone
    descriptors = *(tensors[name] for name in inputs), convolution, tensors[problem.result]
    _call(f"FindConvolution{kind}Algorithm", _handle(), *descriptors, MAX_RESULTS, byref(count), results)
    allowed = [r for r in results[: count.value] if not r.status and (format != FP32 or r.math in (0, FMA_MATH))]
    fastest = min(allowed, key=lambda result: result.time_ms)
    workspace = cuda.device_array(max(1, fastest.memory), "uint8")

    def launch(stream, **arrays):
        _call("SetStream", _handle(), c_void_p(int(stream)))
        pointers = {name: c_void_p(address_of(array)) for name, array in arrays.items()}
        operands = [argument for name in inputs for argument in (tensors[name], pointers[name])]
        memory = fastest.algorithm, c_void_p(address_of(workspace)), c_size_t(fastest.memory)
        result = tensors[problem.result], pointers[problem.result]
        _call(f"Convolution{kind}", _handle(), ONE, *operands, convolution, *memory, ZERO, *result)

    return Best(fastest.algorithm, fastest.memory, launch)


def contender(problem: Convolution, format: Format, x, w, y, _):
    """Return a launch of the fastest algorithm of cuDNN's own search; a contender of `labkit.bench._harness`."""
    base_class = {"y": Forward, "x": BackwardData, "w": BackwardFilter}[problem.result]
    fastest = find_best(base_class(**problem.fields), format)  # the base class, so that the cache searches once
    call = partial(fastest.launch, x=x, w=w, y=y)
    name = ALGORITHMS[problem.result][fastest.algorithm]
    call.facts = {"algorithm": name, "workspace_bytes": fastest.workspace_bytes}
    return call
