"""The bench of stalls: each of ncu's states of a warp is in one of ours, and a row has the share that ncu measured."""

import csv

import pytest

from labkit.bench import _ncu, stalls


def test_the_states_of_a_step_are_those_that_ncu_measured(tmp_path):
    names = [name for group in stalls.STATES.values() for name in group]
    assert len(set(names)) == len(names)
    metrics = {stalls.METRIC.format(name): 2.5 for name in names} | dict.fromkeys(stalls.BUSY.values(), 61.0)
    table = tmp_path / "ncu.csv"
    with table.open("w", newline="", encoding="utf-8") as file:
        file.write("==PROF== Connected to process 1\n")
        rows = csv.writer(file, quoting=csv.QUOTE_ALL)  # as ncu does
        rows.writerow(["ID", "Metric Name", "Metric Value"])
        rows.writerows(["0", name, f"{value:.2f}"] for name, value in metrics.items())
    (found,) = _ncu.read(table)
    ladder, step, problem, format = stalls.steps()[-1]
    assert (ladder, step.slug) == ("tensor", "persistent")
    rows = {row["state"]: row["percent"] for row in stalls.states(ladder, step, problem, format, found)}
    assert rows.pop("busy") == 61
    assert rows == {state: pytest.approx(2.5 * len(group)) for state, group in stalls.STATES.items()}
