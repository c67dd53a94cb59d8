"""The algorithms that compute convolutions: kernels (steps of ladders), why one does not apply, and their workspace.

A step declares what it accepts in `SUPPORTED`; all else is read from its launches. A dry run makes them for operands
without memory and only counts the workspace: it allocates nothing and runs nothing.
"""

from dataclasses import dataclass
from functools import cache

from labkit import cuda
from labkit.arrays.views import OperandSlot, View
from labkit.arrays.workspace import ALIGNMENT_BYTES, DUMMY_ADDRESS, CountingWorkspace
from labkit.conv.problem import Convolution
from labkit.formats import Format
from labkit.ladder import Launch, Step, TooLarge, ladders
from labkit.layout import c_strides
from labkit.ptx.capabilities import can_run


@dataclass(frozen=True)
class DryRun:
    """The plan of an algorithm for a problem: why it does not apply, or its workspace and launches."""

    misfit: str
    workspace_bytes: int | None = None
    launches: tuple[Launch, ...] = ()


@dataclass(frozen=True)
class Algorithm:
    """A step of a ladder that computes convolutions for users: "winograd/f4x4"."""

    step: Step

    def __str__(self):
        return f"{self.step.ladder.name}/{self.step.slug}"

    def __repr__(self):
        return f"<algorithm {self}>"

    def misfit(self, problem: Convolution, format: Format) -> str:
        """Say in one sentence why it does not compute this problem on this GPU; "" if it does."""
        return self.dry_run(problem, format).misfit

    def workspace_bytes(self, problem: Convolution, format: Format, limit_bytes: int | None = None) -> int | None:
        """Return the exact memory that a plan allocates beyond the operands; None if the algorithm does not apply.

        With a limit, it is the need of the algorithm's most economical form.
        """
        return self.dry_run(problem, format, limit_bytes).workspace_bytes

    def launches(self, x, w, y, problem, format, workspace, limit_bytes: int | None = None) -> list[Launch]:
        """Return the launches for these operands, with a workspace within the limit if the algorithm can do so."""
        options = {"format": format, "workspace": workspace}
        if limit_bytes is not None:
            options["limit_bytes"] = limit_bytes // ALIGNMENT_BYTES * ALIGNMENT_BYTES  # granularity of allocations
        return self.step.launches(x, w, y, problem, **options)

    def dry_run(self, problem: Convolution, format: Format, limit_bytes: int | None = None) -> DryRun:
        """Find the launches and their workspace without memory and without a launch."""
        if format not in self.step.formats:
            accepted = " or ".join(map(str, self.step.formats))
            return DryRun(f"this step takes {accepted}, and the arrays hold {format}")
        if why := problem.misfit(getattr(self.step.module, "SUPPORTED", {})):
            return DryRun(why)
        workspace = CountingWorkspace()
        try:
            launches = self.launches(*placeholder_views(problem, format), problem, format, workspace, limit_bytes)
        except TooLarge as error:
            return DryRun(error.why)
        gpu = cuda.get_current_device()
        for launch in launches:
            if why := launch_misfit(launch, format, gpu):
                return DryRun(why)
        return DryRun("", workspace.size_bytes, tuple(launches))

    def as_data(self) -> str:
        """Return the name under which JSON stores the algorithm."""
        return str(self)

    @property
    def kernels(self) -> list:
        """The functions from which `labkit.calls.tuning` finds all sources of the algorithm."""
        problems = self.step.roofline_problem, self.step.compared  # a small one and a large one
        launches = [launch for problem in problems for launch in self.dry_run(problem, self.step.formats[0]).launches]
        return [self.step.module.launches, self.step.kernel, *(launch.kernel for launch in launches)]


@cache
def algorithms(result: str) -> tuple[Algorithm, ...]:
    """Return the algorithms for outputs ("y"), the gradient of images ("x") or of filters ("w"), in ladder order.

    A ladder lists its steps for users in `ALGORITHMS`; without it, all of its steps are algorithms.
    """
    return tuple(
        Algorithm(step)
        for ladder in ladders("conv")
        for step in ladder
        if step.problem.result == result and step.slug in getattr(ladder.module, "ALGORITHMS", [step.slug])
    )


def find_algorithm(name: str, result: str) -> Algorithm:
    """Return an algorithm by its name; raise ValueError, with all names, if it is unknown."""
    by_name = {str(algorithm): algorithm for algorithm in algorithms(result)}
    if str(name) not in by_name:
        raise ValueError(f"there is no algorithm {str(name)!r} for this: there is {', '.join(by_name)}")
    return by_name[str(name)]


def launch_misfit(launch: Launch, format: Format, gpu) -> str:
    """Say in one sentence why a GPU, a device object of numba, does not accept a launch; "" if it does."""
    capability = tuple(gpu.compute_capability)
    if not can_run(launch.kernel, format.number, capability):
        return f"it uses instructions that a GPU of compute capability {'.'.join(map(str, capability))} lacks"
    if launch.shared_bytes > gpu.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        return f"a block of it takes {launch.shared_bytes:,} bytes of shared memory, more than this GPU gives"
    return ""


def placeholder_views(problem: Convolution, format: Format) -> tuple[View, View, View]:
    """Return views of x, w and y in C order, without memory."""
    views = []
    for number, (name, shape) in enumerate(problem.shapes.items()):
        dtype = (format.result if name == problem.result else format).dtype
        strides = tuple(stride * dtype.itemsize for stride in c_strides(shape))
        views.append(View(OperandSlot(number), shape, strides, dtype, DUMMY_ADDRESS * (number + 1)))
    return tuple(views)
