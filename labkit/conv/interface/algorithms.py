"""The algorithms that compute convolutions: steps of the ladders, why one does not apply, and what memory it needs.

What a step takes is stated by its `TAKES`; all else is read from the launches that it would make. They are planned for
operands that are nowhere, with memory that is only counted, so that nothing is allocated and nothing runs.
"""

from dataclasses import dataclass
from functools import cache

from labkit import cuda
from labkit.arrays.views import Place, View
from labkit.arrays.workspace import ALIGNMENT_BYTES, NOWHERE, Counted
from labkit.conv.problem import Convolution
from labkit.formats import Format
from labkit.ladder import Launch, Step, TooLarge, ladders
from labkit.layout import c_strides
from labkit.ptx.capabilities import can_run


@dataclass(frozen=True)
class Algorithm:
    """A step of a ladder that is offered to whoever wants a convolution: "winograd/f4x4"."""

    step: Step

    def __str__(self):
        return f"{self.step.ladder.name}/{self.step.slug}"

    def __repr__(self):
        return f"<algorithm {self}>"

    def misfit(self, problem: Convolution, format: Format) -> str:
        """Why it does not compute this problem on this GPU, in a sentence; "" where it does."""
        return self.planned(problem, format).misfit

    def workspace_bytes(self, problem: Convolution, format: Format, limit_bytes: int | None = None) -> int | None:
        """The memory that a plan of it allocates beside the operands, to the byte; None where it does not apply.

        Where there is a limit, it is what the algorithm needs when it spares memory as far as it can.
        """
        return self.planned(problem, format, limit_bytes).workspace_bytes

    def launches(self, x, w, y, problem, format, workspace, limit_bytes: int | None = None) -> list[Launch]:
        """What it launches for these operands, with a workspace up to the limit if it can do with so little."""
        options = {"format": format, "workspace": workspace}
        if limit_bytes is not None:
            options["limit_bytes"] = limit_bytes // ALIGNMENT_BYTES * ALIGNMENT_BYTES  # in which memory is handed out
        return self.step.launches(x, w, y, problem, **options)

    def planned(self, problem: Convolution, format: Format, limit_bytes: int | None = None) -> "Planned":
        """What it would launch, found without memory and without a launch."""
        if format not in self.step.formats:
            taken = " or ".join(map(str, self.step.formats))
            return Planned(f"this step takes {taken}, and the arrays hold {format}")
        if why := problem.misfit(getattr(self.step.module, "TAKES", {})):
            return Planned(why)
        workspace = Counted()
        try:
            launches = self.launches(*described(problem, format), problem, format, workspace, limit_bytes)
        except TooLarge as error:
            return Planned(error.why)
        for launch in launches:
            if why := refused(launch, format):
                return Planned(why)
        return Planned("", workspace.size_bytes, tuple(launches))

    def as_data(self) -> str:
        """As JSON gives it back."""
        return str(self)

    @property
    def kernels(self) -> list:
        """From what `labkit.calls.tuning` finds all sources of it: what makes its launches, and the kernels of some."""
        some = self.step.standing, self.step.compared  # a small problem and a large one
        launches = [launch for problem in some for launch in self.planned(problem, self.step.formats[0]).launches]
        return [self.step.module.launches, self.step.kernel, *(launch.kernel for launch in launches)]


@dataclass(frozen=True)
class Planned:
    """What an algorithm makes of a problem: why it does not apply, or the workspace that it needs and its launches."""

    misfit: str
    workspace_bytes: int | None = None
    launches: tuple[Launch, ...] = ()


@cache
def algorithms(result: str) -> tuple[Algorithm, ...]:
    """What computes outputs ("y"), the gradient of images ("x"), or that of filters ("w"), in the order of ladders.

    A ladder says by `ALGORITHMS` which of its steps are offered: others were steps on the way. If it says nothing, all
    of them are.
    """
    return tuple(
        Algorithm(step)
        for ladder in ladders("conv")
        for step in ladder
        if step.problem.result == result
        and step.slug in getattr(ladder.module, "ALGORITHMS", {one.slug for one in ladder})
    )


def algorithm_named(name: str, result: str) -> Algorithm:
    """An algorithm by its name.

    Raises
    ------
    ValueError
        There is none; the message lists those there are.
    """
    known = {str(one): one for one in algorithms(result)}
    if str(name) not in known:
        raise ValueError(f"there is no algorithm {str(name)!r} for this: there is {', '.join(known)}")
    return known[str(name)]


def refused(launch: Launch, format: Format) -> str:
    """Why this GPU does not take a launch, in a sentence; "" where it does."""
    gpu = cuda.get_current_device()
    capability = tuple(gpu.compute_capability)
    if not can_run(launch.kernel, format.number, capability):
        return f"it uses instructions that a GPU of compute capability {'.'.join(map(str, capability))} lacks"
    if launch.shared_bytes > gpu.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        return f"a block of it takes {launch.shared_bytes:,} bytes of shared memory, more than this GPU gives"
    return ""


def described(problem: Convolution, format: Format) -> tuple[View, View, View]:
    """Operands x, w and y of a problem as they would lie, without memory."""
    views = []
    for number, (name, shape) in enumerate(problem.shapes.items()):
        dtype = (format.result if name == problem.result else format).dtype
        strides = tuple(stride * dtype.itemsize for stride in c_strides(shape))
        views.append(View(Place(number), shape, strides, dtype, NOWHERE * (number + 1)))
    return tuple(views)
