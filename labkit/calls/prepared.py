"""Prepared operations: launches for operands of one layout, and the check of that layout."""

from collections.abc import Callable, Mapping, Sequence
from threading import Lock

from labkit import cuda
from labkit.arrays.addresses import extent, share_memory
from labkit.arrays.operands import as_device_array, as_view, layout
from labkit.arrays.owners import NeedsPreparation, owner_of
from labkit.arrays.views import OperandSlot
from labkit.arrays.workspace import CountingWorkspace, Workspace
from labkit.calls.dynamo import without_tracing
from labkit.calls.operation import Operation
from labkit.ladder import Launch

MAX_CACHED = 64  # entries of each cached set


class Prepared:
    """An operation for operands of one layout.

    Attributes
    ----------
    names
        Names of the operands.
    outputs
        Numbers of the written operands.
    launches
        The object that runs the kernels: `PackedLaunches`, or `SimulatedLaunches` without a GPU.
    """

    def __init__(self, operation: Operation, operands: Mapping[str, object]):
        self.names, arrays = tuple(operands), list(operands.values())
        self.outputs = [number for number, name in enumerate(self.names) if name in operation.written]
        self._layouts = [layout(X) for X in arrays]  # shape, strides, type, bytes past a multiple of 16
        self._pairs = self._overlap_ranges(operation.in_place)  # of an output and another operand
        self._signatures = [set() for _ in arrays]  # of arrays that have these layouts
        self._safe_distances, self._safe_addresses, self._lock = set(), set(), Lock()
        views = [as_view(X, OperandSlot(number)) for number, X in enumerate(arrays)]  # of memory that runs replace

        def launches(*views, workspace):
            return operation.launches(dict(zip(self.names, views, strict=True)), workspace)

        if cuda.on_gpu():
            from labkit.calls.packed_launches import PackedLaunches

            self.launches = PackedLaunches(launches, views)
        else:
            self.launches = SimulatedLaunches(launches, views)

    def addresses(self, operands: Sequence) -> tuple[int, ...]:
        """Return the addresses of operands.

        Raise TypeError or ValueError if the layout of an operand is not the prepared one.
        """
        if len(operands) != len(self.names):
            raise TypeError(f"this plan takes {', '.join(self.names)}, or nothing, and got {len(operands)} operands")
        addresses = []
        for number, X in enumerate(operands):
            try:
                signature, address = owner_of(X).signature(X)
            except (TypeError, NeedsPreparation):
                as_device_array(self.names[number], X, number in self.outputs)  # says why not
                raise
            if signature not in self._signatures[number]:
                as_device_array(self.names[number], X, number in self.outputs)
                self._check_layout(number, X)
                _remember(self._signatures[number], signature)
            addresses.append(address)
        return tuple(addresses)

    def check_overlap(self, operands: Sequence, addresses: tuple[int, ...]) -> None:
        """Raise ValueError if writing an output would change another operand."""
        if addresses in self._safe_addresses:
            return
        with self._lock:
            for output, number, begin, end, allowed in self._pairs:
                distance, pair = addresses[number] - addresses[output], (output, number)
                if begin < distance < end and distance != allowed and (*pair, distance) not in self._safe_distances:
                    self._check_pair(operands, output, number)
                    _remember(self._safe_distances, (*pair, distance))
            _remember(self._safe_addresses, addresses)

    def _check_pair(self, operands, output, number):
        if share_memory(as_view(operands[number]), as_view(operands[output])):
            name, written = self.names[number], self.names[output]
            used = "written too" if number in self.outputs else f"read while {written} is written"
            raise ValueError(f"{written} shares memory with {name}, which is {used}: give {written} memory of its own")

    def _check_layout(self, number, X):
        name = self.names[number]
        planned, found = self._layouts[number], layout(X)
        for verb, wanted, has in zip(("is of shape", "has strides", "holds"), planned, found):
            if wanted != has:
                raise ValueError(f"{name} {verb} {has}, and the plan is for {wanted}: make a plan for such an array")
        if planned != found:
            raise ValueError(
                f"{name} begins {found[3]} bytes after a multiple of 16, and the plan is for {planned[3]}: "
                "make a plan for such an array"
            )

    def _overlap_ranges(self, in_place) -> list[tuple[int, int, int, int, int | None]]:
        """Return output, other operand, the range of distances at which they may overlap, and the allowed distance."""
        extents = [extent(shape, strides, dtype.itemsize) for shape, strides, dtype, _ in self._layouts]
        pairs = []
        for output in self.outputs:
            (begin, end), overwritten = extents[output], in_place.get(self.names[output])
            for number, (low, high) in enumerate(extents):
                if number == output or (number in self.outputs and number < output):  # each pair of outputs once
                    continue
                may_coincide = self.names[number] == overwritten and self._layouts[number] == self._layouts[output]
                pairs.append((output, number, begin - high, end - low, 0 if may_coincide else None))
        return pairs


def _remember(cached, entry):
    if len(cached) >= MAX_CACHED:
        cached.clear()
    cached.add(entry)


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
