"""The launches of an operation in the simulator, which are made anew for each run."""

from collections.abc import Callable, Sequence

from labkit.arrays.operands import as_view
from labkit.arrays.workspace import Counted, Workspace
from labkit.calls.dynamo import undisturbed
from labkit.ladder import Launch


class SimulatedLaunches:
    """See `PackedLaunches`: here each run has memory of its own, in which a read of what nothing has written shows."""

    takes_memory = False

    def __init__(self, launches: Callable[..., list[Launch]], operands: Sequence):
        self._launches, workspace = launches, Counted(first_place=len(operands))
        launches(*operands, workspace=workspace)  # raises now what each run would
        self.workspace_bytes = workspace.size_bytes

    def run(self, operands: Sequence, addresses: tuple[int, ...], stream: int, memory: tuple[int, int]) -> None:
        """Runs the launches for operands."""
        undisturbed(self._run)(operands)

    def _run(self, operands):
        for launch in self._launches(*map(as_view, operands), workspace=Workspace()):
            launch.run()
