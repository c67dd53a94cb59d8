"""The calls of `labkit tune` and `labkit warm`, by name, with random operands of a problem given by its fields."""

from ast import literal_eval
from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields
from importlib import import_module

from labkit.ladder import Problem

GEMM = "gemm"
PROBLEMS = {  # of calls, in the package of each
    "attention.attend": "AttentionForward",
    "attention.attend_backward": "AttentionBackward",
    "attention.attend_cached": "AttentionDecode",
    "conv.backward_data": "BackwardData",
    "conv.backward_filter": "BackwardFilter",
    "conv.forward": "Forward",
    "norm.batch_norm": "BatchForward",
    "norm.batch_norm_backward": "BatchBackward",
    "norm.layer_norm": "RowForward",
    "norm.layer_norm_backward": "RowBackward",
    "norm.rms_norm": "RowForward",
    "norm.rms_norm_backward": "RowBackward",
    "softmax.softmax": "Forward",
    "softmax.softmax_backward": "Backward",
}


def tune(name: str, words: Sequence[str], format: str, **options) -> dict[object, float]:
    """Time the candidates for a call; returns the median time of each in ms, the fastest first.

    Parameters
    ----------
    name
        "gemm", or one of `PROBLEMS`.
    words
        The fields of the problem, in their order or as NAME=VALUE; also options of the call, as NAME=VALUE.
    format
        Of the operands, by its name.
    options
        Options of `gemm.tune`; no other call has any.

    Raises
    ------
    TypeError, ValueError
        There is no such call, or the words describe no problem.
    RuntimeError
        There is no GPU.
    """
    if name == GEMM:
        from labkit import gemm

        return gemm.tune(*_read_sizes(words), format, **options)
    call, problem, left_out, more = _read_problem(name, words)
    if name.startswith("conv."):
        from labkit import conv

        return {row.algorithm: row.time_ms for row in conv.find(problem, format) if not row.reason}
    from labkit.calls.tuner import tune_problem
    from labkit.formats import format_named

    return tune_problem(call, problem, format_named(format), left_out, **more)


def warm(name: str, words: Sequence[str], format: str, **options) -> None:
    """Compile the kernels that a call takes for a problem; parameters and errors are those of `tune`."""
    from labkit.calls.tuner import bind_problem, warm
    from labkit.formats import format_named

    if name == GEMM:
        from labkit.gemm.interface.tuner import bind_product

        warm(*bind_product(*_read_sizes(words), format, **options))
        return
    call, problem, left_out, more = _read_problem(name, words)
    if name.startswith("conv."):
        from labkit.conv.interface.convolution import ConvByProblem

        arrays = dict(zip(ConvByProblem.arrays, problem.operands(format_named(format))[:-1], strict=True))
        warm(ConvByProblem(problem, format), arrays)
        return
    warm(*bind_problem(call, problem, format_named(format), left_out, **more))


def _read_sizes(words) -> list[int]:
    """Return M, N and K."""
    if len(words) != 3 or not all(word.isdecimal() for word in words):
        raise ValueError(f"gemm takes M N K, three whole numbers, and got {' '.join(words)}")
    return list(map(int, words))


def _read_problem(name, words) -> tuple[Callable, Problem, list[str], dict]:
    """Return the call of a name, its problem, the arrays that it does not get, and its further options."""
    if name not in PROBLEMS:
        raise ValueError(f"there is no call {name!r}; there is {GEMM}, {', '.join(PROBLEMS)}")
    package, _, call = name.partition(".")
    module = import_module(f"labkit.{package}")
    call, problem_class = getattr(module, call), getattr(module, PROBLEMS[name])
    problem_fields, call_fields = ([field.name for field in fields(kind)] for kind in (problem_class, call.operation))
    call_fields.remove("format")
    needed = [field.name for field in fields(problem_class) if field.default is MISSING]
    known = problem_fields if package == "conv" else problem_fields + call_fields
    values = _values(name, words, order=problem_fields, needed=needed, known=known)
    options = {name: value for name, value in values.items() if name not in problem_fields}
    if "kind" in problem_fields:  # which the call says
        values["kind"] = call.operation.kind
    problem = problem_class(**{name: value for name, value in values.items() if name in problem_fields})
    available = {"lengths": getattr(problem, "ragged", True), "table": getattr(problem, "page", True) is not None}
    return call, problem, [name for name, is_available in available.items() if not is_available], options


def _values(
    call: str, words: Sequence[str], order: Sequence[str], needed: Sequence[str], known: Sequence[str]
) -> dict[str, object]:
    """Return values by name; words without a name are in the order of the names.

    Raises
    ------
    ValueError
        There are too few, too many, or unknown names.
    """
    in_order = [word for word in words if "=" not in word]
    values = dict(zip(order, in_order)) | dict(word.split("=", 1) for word in words if "=" in word)
    complaints = [f"no {name}" for name in needed if name not in values]
    complaints += [f"{name}, which is unknown" for name in values if name not in known]
    complaints += [f"{word}, which is one too many" for word in in_order[len(order) :]]
    if complaints:
        raise ValueError(
            f"{call} got {'; '.join(complaints)}: give {' '.join(needed)}, and what you like of "
            f"{' '.join(name for name in dict.fromkeys(known) if name not in needed)} as NAME=VALUE"
        )
    return {name: _value(word) for name, word in values.items()}


def _value(word: str) -> object:
    """Return a number, True, False or None, or else the word."""
    try:
        return literal_eval(word.capitalize() if word.lower() in ("true", "false", "none") else word)
    except (ValueError, SyntaxError):
        return word
