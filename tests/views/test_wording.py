"""What every view says when it is given something else than a trace."""

import pytest

from labkit.views import banks, cache, findings, inspector, lowering, memory, tiling
from tests.views.test_replay import loop_trace


@pytest.mark.parametrize("view", [tiling, memory, banks, cache, findings, inspector, lowering])
@pytest.mark.parametrize(("given", "named"), [(None, "None"), ([], "a list"), (int, "a type"), (3, "an int")])
def test_what_is_no_trace_is_refused(view, given, named):
    with pytest.raises(TypeError, match=rf"{view.__name__} takes a trace, what .* returned, not {named}\."):
        view(given)


@pytest.mark.parametrize("view", [tiling, memory, banks, inspector, lowering])
def test_a_view_of_launches_refuses_a_loop(view):
    with pytest.raises(TypeError, match="takes a trace, what `labkit.simulate` returned, not a LoopTrace"):
        view(loop_trace([0]))
