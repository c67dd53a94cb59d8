"""What `__init__.py` loads when it is asked for, as editors and type checkers see it."""

from labkit import (
    attention,
    blas,
    book,
    conv,
    cuda,
    elementwise,
    formats,
    gemm,
    ladder,
    layouts,
    loops,
    norm,
    ptx,
    results,
    softmax,
    views,
)
from labkit.arrays.pool import workspace_limit
from labkit.bench.latency import pointer_chase
from labkit.calls.call import free
from labkit.calls.plan import plan
from labkit.calls.timing import gpu_time_ms
from labkit.calls.tuner import tune
from labkit.cuda import cpp as cuda_cpp
from labkit.cuda import specialise
from labkit.exercises import check
from labkit.forecast import sass
from labkit.forecast.roofline import attainable_tflops, peak_tflops, ridge_point, time_bound
from labkit.forecast.time_model import modelled_time
from labkit.forecast.timeline import timeline as modelled_timeline
from labkit.machine import device
from labkit.machine.gpus import gpu
from labkit.machine.occupancy import occupancy as sm_occupancy
from labkit.simulator.coverage import entries as kernel_language
from labkit.simulator.errors import KernelError, LaunchError
from labkit.simulator.explorer.schedules import explore
from labkit.simulator.functions.ulp import allowed_error
from labkit.simulator.run import simulate, translated

__version__: str
__all__ = [
    "KernelError",
    "LaunchError",
    "allowed_error",
    "attainable_tflops",
    "attention",
    "blas",
    "book",
    "check",
    "conv",
    "cuda",
    "cuda_cpp",
    "device",
    "elementwise",
    "explore",
    "formats",
    "free",
    "gemm",
    "gpu",
    "gpu_time_ms",
    "kernel_language",
    "ladder",
    "layouts",
    "loops",
    "modelled_time",
    "modelled_timeline",
    "norm",
    "peak_tflops",
    "plan",
    "pointer_chase",
    "ptx",
    "results",
    "ridge_point",
    "sass",
    "simulate",
    "sm_occupancy",
    "softmax",
    "specialise",
    "time_bound",
    "translated",
    "tune",
    "views",
    "workspace_limit",
]
