"""What others need of numba-cuda besides kernels: its calls of the CUDA driver, and what these say of the GPU."""

from typing import Any


def import_bindings() -> tuple[Any, Any]:
    """Import the driver's functions, which return a status, and numba's versions, which raise; needs numba-cuda."""
    # numba has a `cuda` of its own, older than numba-cuda, and the checker reads that one
    from numba.cuda.cudadrv.driver import binding, driver  # pyright: ignore[reportAttributeAccessIssue]

    return binding, driver


def error_class() -> type[Exception]:
    """Return the class of the errors that numba's versions raise; needs numba-cuda."""
    from numba.cuda.cudadrv.driver import CudaAPIError

    return CudaAPIError


def gpu_versions() -> dict[str, str]:
    """Return the compute capability of this thread's GPU, and the version of CUDA that its driver has."""
    from numba import cuda

    _, driver = import_bindings()
    cuda.current_context()
    cuda_version = driver.cuDriverGetVersion()
    return {
        "compute_capability": ".".join(map(str, cuda.get_current_device().compute_capability)),
        "cuda_of_driver": f"{cuda_version // 1000}.{cuda_version % 1000 // 10}",
    }
