"""A run beyond a limit is left out if it would take long at the pace of the runs before it."""

from types import SimpleNamespace

import numpy as np

from labkit.checking.pace import MOST_S, Pace, count_elements


def launch_of(size, may_stop=False):
    return SimpleNamespace(args=(np.zeros(size), 3.0), may_stop=may_stop)


def test_all_runs_but_the_slowest_tell_the_pace():
    pace = Pace()
    assert not pace.is_too_slow_for(launch_of(10**6))  # nothing is known yet
    for seconds in (1.0, 0.1):
        pace.start()
        pace._begin_s -= seconds
        pace.stop(launch_of(99))
    assert count_elements(launch_of(99)) == 100
    assert not pace.is_too_slow_for(launch_of(int(100 * MOST_S / 0.2)))
    assert pace.is_too_slow_for(launch_of(int(2000 * MOST_S)))


def test_all_runs_beyond_limits_share_the_time():
    pace = Pace()
    for _ in range(2):
        pace.start()
        pace._begin_s -= 0.6 * MOST_S
        pace.stop(launch_of(99, may_stop=True))
    assert pace.is_too_slow_for(launch_of(1))
