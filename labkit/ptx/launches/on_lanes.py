"""Programmatic dependent launch on lanes: launches run one after the other here, so that no thread waits."""

from labkit.simulator.family import Family

LAUNCHES = Family(keeps_clocks=True)


def release(w, mask):
    """Run `launch_release`, which has no effect here."""
