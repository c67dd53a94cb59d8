"""Plans: the launches of an operation for operands of one layout, prepared once and run many times.

>>> plan = labkit.plan(gemm.multiply, A, B, C=C)
>>> plan()          # C = A @ B
>>> plan(A2, B, C)  # another A of the same layout

A kernel launch costs the host some microseconds. Preparing it costs some hundred: the kernel and its compiled types,
the number of blocks, the workspace, the tensor maps for TMA. None of these depends on the operands' addresses, as long
as their alignment is the same.
"""

from collections.abc import Mapping

from labkit.arrays.addresses import check_own_memory
from labkit.arrays.operands import as_device_array, as_view
from labkit.arrays.owners import owner_of
from labkit.calls.memory import PlanWorkspace
from labkit.calls.operation import Operation, bind_call
from labkit.calls.prepared import Prepared
from labkit.calls.streams import device_of, stream_of, use_device


class Plan:
    """The launches of an operation for operands of one layout.

    `plan()` runs for the plan's operands, which it keeps alive. `plan(A, B, C)` replaces them, from then on, by others
    of the same layout. A plan owns its workspace, so a run allocates nothing. A CUDA graph can capture a run on any
    stream; keep the plan as long as the graph. Runs execute one after another, whichever threads and streams request
    them. Graphs that replay at the same time need one plan each.

    Attributes
    ----------
    workspace_bytes
        Size of the workspace, which the plan holds; the simulator allocates it in each run.
    """

    def __init__(
        self,
        operation: Operation,
        operands: Mapping[str, object],
        *,
        stream=None,
        workspace: PlanWorkspace | None = None,
    ):
        arrays, self._device, self._stream = tuple(operands.values()), device_of(operands), stream
        self._workspace = workspace or PlanWorkspace()
        with use_device(self._device):
            self._prepared = prepare(operation, operands)
            addresses = self._prepared.addresses(arrays)
            self._prepared.check_overlap(arrays, addresses)
            self._workspace.allocate(self._prepared.launches, arrays, stream_of(arrays, stream))
        self._last = arrays, addresses  # one pair, since several threads may set it
        self.workspace_bytes = self._prepared.launches.workspace_bytes

    def __call__(self, *operands, stream=None) -> None:
        """Run the launches.

        Parameters
        ----------
        operands
            No operand, or all of them. Each has the layout of the one that it replaces: the same shape, strides and
            type, and the same address modulo 16 bytes.
        stream
            Stream of the run. None means the stream of the plan, else the current stream of torch or CuPy operands.

        Raises
        ------
        TypeError, ValueError
            The layout of an operand is not that of the plan.
        """
        if operands:
            addresses = self._prepared.addresses(operands)
            self._prepared.check_overlap(operands, addresses)
            self._last = operands, addresses
        else:
            operands, addresses = self._last
        stream = self._stream if stream is None else stream
        with use_device(self._device):
            self._workspace.run(self._prepared.launches, operands, addresses, stream_of(operands, stream))
            for number in self._prepared.outputs:
                owner_of(operands[number]).mark_written(operands[number])


def plan(call, *arrays, **options) -> Plan:
    """Prepare a call once, to run it many times: `plan()`, or `plan(x, ...)` for other arrays.

    A run costs the host a few microseconds and allocates nothing. A CUDA graph can capture it on any stream.

    Parameters
    ----------
    call
        A function of an operation: `norm.layer_norm`, `gemm.multiply`, `attention.attend` and so on.
    arrays, options
        Arrays and options of the call. Arrays are on the device; all outputs must be among them.

    Returns
    -------
    The plan. To run it for other arrays, pass a replacement for each array of the plan, in the order of the call's
    parameters.

    Raises
    ------
    TypeError, ValueError
        `call` is no call of an operation, its arrays or options do not fit, or no two of its runs are equal.

    Examples
    --------
    >>> plan = labkit.plan(norm.layer_norm, x, weight, bias, y=y)
    >>> plan()
    """
    operation, operands, stream = bind_call(call, arrays, options, "planned")
    return make_plan(operation, operands, stream=stream)


def make_plan(operation: Operation, arrays: Mapping[str, object], **options) -> Plan:
    """Return a plan for arrays by their names, some of them None; the options are those of `Plan`."""
    operands = operation.select(arrays)
    for name in operation.outputs:
        if name not in operands:
            raise TypeError(f"{name} is None, and a plan allocates nothing: give an array to write to")
    if operation.varies:
        raise ValueError(operation.varies)
    operands = {name: as_device_array(name, X, name in operation.written) for name, X in operands.items()}
    operation.check(operands)
    return Plan(operation.with_format(operands), operands, **options)


def prepare(operation: Operation, operands: Mapping[str, object]) -> Prepared:
    """Prepare an operation for valid operands: plain device arrays.

    Raise ValueError if elements of an output share memory.
    """
    for name in operation.written:
        if name in operands:
            check_own_memory(name, as_view(operands[name]))
    return Prepared(operation, operands)
