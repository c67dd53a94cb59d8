"""The calls that `labkit tune` times, by name, with random operands of a problem given by its fields."""

from ast import literal_eval
from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields
from importlib import import_module

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
        return _tune_gemm(words, format, **options)
    if name not in PROBLEMS:
        raise ValueError(f"there is nothing to tune for {name!r}; there is {GEMM}, {', '.join(PROBLEMS)}")
    package, _, call = name.partition(".")
    module = import_module(f"labkit.{package}")
    call, problem_class = getattr(module, call), getattr(module, PROBLEMS[name])
    problem_fields, call_fields = ([field.name for field in fields(kind)] for kind in (problem_class, call.operation))
    call_fields.remove("format")
    needed = [field.name for field in fields(problem_class) if field.default is MISSING]
    known = problem_fields if package == "conv" else problem_fields + call_fields
    values = _values(name, words, order=problem_fields, needed=needed, known=known)
    if package == "conv":
        ranking = module.find(problem_class(**values), format)
        return {row.algorithm: row.time_ms for row in ranking if not row.reason}
    return _tune_steps(call, problem_class, values, format)


def _tune_gemm(words, format, **options):
    from labkit import gemm

    if len(words) != 3 or not all(word.isdecimal() for word in words):
        raise ValueError(f"gemm takes M N K, three whole numbers, and got {' '.join(words)}")
    return gemm.tune(*map(int, words), format, **options)


def _tune_steps(call: Callable, problem_class: type, values: dict, format: str):
    from labkit.calls.tuner import tune_problem
    from labkit.formats import format_named

    names = {field.name for field in fields(problem_class)}
    if "kind" in names:  # which the call says
        values["kind"] = call.operation.kind
    problem = problem_class(**{name: value for name, value in values.items() if name in names})
    options = {name: value for name, value in values.items() if name not in names}
    available = {"lengths": getattr(problem, "ragged", True), "table": getattr(problem, "page", True) is not None}
    left_out = [name for name, is_available in available.items() if not is_available]
    return tune_problem(call, problem, format_named(format), left_out, **options)


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
