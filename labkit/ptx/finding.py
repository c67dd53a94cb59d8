"""Findings of instructions: one form of message for all families."""

from labkit.trace import Site


def log_error(log, key, place: Site | tuple, kind: str, what: str, cure: str, count: int = 1, **finding):
    """Add an error to the log, or count it if its key is known.

    Parameters
    ----------
    key
        Equal for errors that are reported once.
    place
        Site of an access in the source, or (line, column, ...) of a call.
    what
        Sentence without its full stop that says what is wrong there.
    cure
        Sentence that says how to fix it.
    **finding
        Further fields of `labkit.trace.Finding`.
    """
    line, column = (place.line, place.column) if isinstance(place, Site) else place[:2]
    message = f"Line {line}: {what}. {cure}"
    log.add(key, count, kind=kind, message=message, remedy=cure, line=line, column=column, **finding)
