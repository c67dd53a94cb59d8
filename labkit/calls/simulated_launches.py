"""Launches of an operation in the simulator, made anew for each run."""

from collections.abc import Callable, Sequence

from labkit.arrays.operands import as_view
from labkit.arrays.workspace import CountingWorkspace, Workspace
from labkit.calls.dynamo import without_tracing
from labkit.ladder import Launch


class SimulatedLaunches:
    """Launches in the simulator; each run has new workspace, so that uninitialised reads show. See `PackedLaunches`."""

    takes_memory = False

    def __init__(self, launches: Callable[..., list[Launch]], operands: Sequence):
        self._launches, workspace = launches, CountingWorkspace(first_slot=len(operands))
        launches(*operands, workspace=workspace)  # raises now the errors of a run
        self.workspace_bytes = workspace.size_bytes

    def run(self, operands: Sequence, addresses: tuple[int, ...], stream: int, memory: tuple[int, int]) -> None:
        """Run the launches for operands."""
        without_tracing(self._run)(operands)

    def _run(self, operands):
        for launch in self._launches(*map(as_view, operands), workspace=Workspace()):
            launch.run()
