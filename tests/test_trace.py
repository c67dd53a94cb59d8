"""What a trace holds can be read as it is printed."""

from labkit.trace import Finding, ThreadId


def test_findings_print_as_sentences():
    thread = ThreadId((0, 0, 0), (10, 0, 0))
    found = Finding("bounds", "error", "Line 3: x[10] lies outside.", 3, 8, "x", (10,), (thread,), count=2)
    assert repr((found,)) == "(<error, bounds: Line 3: x[10] lies outside.>,)"
