"""labkit: From Triple Loops to FlashAttention, an interactive GPU textbook and lab.

>>> import labkit
>>> labkit.gpu("H100 SXM").sms
132
"""

import os
import sys

__version__ = "0.2.0"

# Public names, loaded at the first access: a module, or a name in one. A module may move; its name here stays.
_PLACES = {
    "KernelError": "labkit.simulator.errors:KernelError",
    "LaunchError": "labkit.simulator.errors:LaunchError",
    "allowed_error": "labkit.simulator.functions.ulp:allowed_error",
    "attainable_tflops": "labkit.forecast.roofline:attainable_tflops",
    "attention": "labkit.attention",
    "blas": "labkit.blas",
    "book": "labkit.book",
    "check": "labkit.exercises:check",
    "conv": "labkit.conv",
    "cuda": "labkit.cuda",
    "cuda_cpp": "labkit.cuda.cpp",
    "device": "labkit.machine.device",
    "elementwise": "labkit.elementwise",
    "explore": "labkit.simulator.explorer.schedules:explore",
    "formats": "labkit.formats",
    "free": "labkit.calls.call:free",
    "gemm": "labkit.gemm",
    "gpu": "labkit.machine.gpus:gpu",
    "gpu_time_ms": "labkit.calls.timing:gpu_time_ms",
    "kernel_language": "labkit.simulator.coverage:entries",
    "ladder": "labkit.ladder",
    "layouts": "labkit.layouts",
    "loops": "labkit.loops",
    "modelled_time": "labkit.forecast.time_model:modelled_time",
    "modelled_timeline": "labkit.forecast.timeline:timeline",
    "norm": "labkit.norm",
    "plan": "labkit.calls.plan:plan",
    "peak_tflops": "labkit.forecast.roofline:peak_tflops",
    "pointer_chase": "labkit.bench.latency:pointer_chase",
    "ptx": "labkit.ptx",
    "results": "labkit.results",
    "ridge_point": "labkit.forecast.roofline:ridge_point",
    "sass": "labkit.forecast.sass",
    "simulate": "labkit.simulator.run:simulate",
    "sm_occupancy": "labkit.machine.occupancy:occupancy",
    "softmax": "labkit.softmax",
    "specialise": "labkit.cuda:specialise",
    "time_bound": "labkit.forecast.roofline:time_bound",
    "translated": "labkit.simulator.run:translated",
    "tune": "labkit.calls.tuner:tune",
    "views": "labkit.views",
    "workspace_limit": "labkit.arrays.pool:workspace_limit",
}
__all__ = [*_PLACES]


def _is_writable(folder: str) -> bool:
    """Return whether a folder, or the existing one above it, can hold new files."""
    while not os.path.exists(folder):
        folder = os.path.dirname(folder)
    return os.access(folder, os.W_OK)


# numba keeps compiled functions beside their source or in the user's cache, and refuses to compile without either.
_CACHES = os.path.dirname(os.path.abspath(__file__)), os.path.abspath(os.path.expanduser("~/.cache"))
if "NUMBA_CACHE_DIR" not in os.environ and not any(map(_is_writable, _CACHES)):
    from tempfile import mkdtemp

    os.environ["NUMBA_CACHE_DIR"] = mkdtemp(prefix="labkit-")
    if "numba" in sys.modules:
        sys.modules["numba"].config.CACHE_DIR = os.environ["NUMBA_CACHE_DIR"]


def __getattr__(name):
    if name in _PLACES:
        from pkgutil import resolve_name

        module, _, inner = _PLACES[name].partition(":")
        try:
            return resolve_name(f"{module}:{inner}")  # without a colon, it would try again to import a missing package
        except ModuleNotFoundError as error:
            from importlib import import_module

            if sentence := import_module("labkit.setup.extras").describe_missing_package(error):
                raise ImportError(f"labkit.{name}: {sentence}", name=error.name) from None
            raise
    raise AttributeError(f"module 'labkit' has no attribute {name!r}")


def __dir__():
    return [*__all__, "__version__"]
