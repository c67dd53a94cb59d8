"""Plans: what an operation launches for certain operands, worked out and packed once, run many times.

>>> plan = labkit.plan(gemm.multiply, A, B, C=C)
>>> plan()          # C = A @ B
>>> plan(A2, B, C)  # the same with another A, which lies as the first one did

To launch a kernel costs the host some microseconds, and to find out what to launch with which arguments some hundred:
which kernel, compiled for which types; how many blocks; what memory beside the operands; how the copy engine sees them.
None of that depends on where the operands are, as long as they are aligned alike.
"""

from collections.abc import Mapping
from inspect import signature

from labkit.arrays.addresses import check_own_memory
from labkit.arrays.driver import current_device
from labkit.arrays.operands import as_view, check_plain
from labkit.arrays.owners import owner_of
from labkit.calls.memory import Reserve
from labkit.calls.operation import Operation
from labkit.calls.prepared import Prepared
from labkit.calls.streams import stream_of


class Plan:
    """The launches of an operation for operands that lie in a certain way.

    `plan()` runs it for the operands that it was made with, which it keeps alive; `plan(A, B, C)` for others from then
    on, which lie in the same way. Its workspace is its own: it allocates nothing when it is run, and can be captured in
    a CUDA graph on any stream; keep it as long as the graph. Its runs come one after another, whichever threads and
    streams ask for them. Graphs that are to replay at once need a plan each.

    Attributes
    ----------
    workspace_bytes
        The memory beside the operands that it holds, or in the simulator takes in each run.
    """

    def __init__(
        self, operation: Operation, operands: Mapping[str, object], *, stream=None, reserve: Reserve | None = None
    ):
        self._prepared = prepared(operation, operands)
        self._operands, self._stream, self._last_stream = tuple(operands.values()), stream, stream
        self._addresses = self._prepared.addresses(self._operands)
        self._prepared.check_apart(self._operands, self._addresses)
        self._reserve = reserve or Reserve()
        self._reserve.make_room(self._prepared.launches, self._operands, stream_of(self._operands, stream))
        self.workspace_bytes = self._prepared.launches.workspace_bytes

    def __call__(self, *operands, stream=None) -> None:
        """Runs the launches.

        Parameters
        ----------
        operands
            None of them, or all, each in the layout of the one in whose place it comes: of the same shape, strides and
            type, and as far from a multiple of 16 bytes.
        stream
            Where to run; if it is None, on the stream that the plan was made for, or else on the current one of torch's
            or CuPy's operands.

        Raises
        ------
        TypeError, ValueError
            Other operands do not lie as those of the plan.
        """
        if operands:
            addresses = self._prepared.addresses(operands)
            self._prepared.check_apart(operands, addresses)
            self._operands, self._addresses = operands, addresses
        else:
            operands, addresses = self._operands, self._addresses
        if stream is not None:
            self._last_stream = stream  # alive as long as its work may use the workspace
        current_device()  # gives this thread a context
        handle = stream_of(operands, self._stream if stream is None else stream)
        self._reserve.run(self._prepared.launches, operands, addresses, handle)
        for number in self._prepared.outputs:
            owner_of(operands[number]).mark_written(operands[number])


def plan(call, *arrays, **options) -> Plan:
    """A call worked out once, to be run many times by calling the plan: `plan()`, or `plan(x, ...)` for other arrays.

    A plan costs the host a few microseconds a run, allocates nothing then, and can be captured in a CUDA graph on any
    stream. Its arrays are of the device.

    Parameters
    ----------
    call
        A function of an operation: `norm.layer_norm`, `gemm.multiply`, `attention.attend` and so on.
    arrays, options
        Those of the call. All its results must be among them.

    Returns
    -------
    The plan. To run for other arrays it is given all that it was made with, in the order of the operation's
    `arrays`, which is that of the call's parameters.

    Raises
    ------
    TypeError, ValueError
        It is no such call, or what it is given does not fit, or each of its runs would be another.

    Examples
    --------
    >>> plan = labkit.plan(norm.layer_norm, x, weight, bias, y=y)
    >>> plan()
    """
    if not hasattr(call, "operation"):
        raise TypeError(f"{call!r} is not planned: give a call of an operation, such as norm.layer_norm")
    bound = signature(call).bind(*arrays, **options)
    bound.apply_defaults()
    given, kind = bound.arguments, call.operation
    stream = given.pop("stream")
    operands = {name: given.pop(name) for name in kind.arrays}
    return make_plan(kind(**given), operands, stream=stream)


def make_plan(operation: Operation, arrays: Mapping[str, object], **options) -> Plan:
    """A plan for arrays by their names, of which some may be None; the options are those of `Plan`."""
    given = {name: arrays[name] for name in operation.arrays if arrays.get(name) is not None}
    for name in operation.needed:
        if name not in given:
            raise TypeError(f"{name} is None: give an array")
    for name in operation.outputs:
        if name not in given:
            raise TypeError(f"{name} is None, and a plan allocates nothing: give an array to write to")
    if operation.varies:
        raise ValueError(operation.varies)
    given = {name: check_plain(name, X, name in operation.written) for name, X in given.items()}
    operation.check(given)
    return Plan(operation.declared(given), given, **options)


def prepared(operation: Operation, operands: Mapping[str, object]) -> Prepared:
    """An operation made ready for operands that fit it: plain arrays of the device, which have their own memory.

    Raises
    ------
    ValueError
        Elements of an output share memory.
    """
    for name in operation.written:
        if name in operands:
            check_own_memory(name, as_view(operands[name]))
    return Prepared(operation, operands)
