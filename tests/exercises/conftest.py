"""Keeps short what every wrong answer costs."""

import pytest

from labkit.checking import repair


@pytest.fixture(autouse=True)
def short_search(monkeypatch):
    """Search for a change that makes a wrong answer right in a tenth of the usual time; test_repair.py takes all."""
    monkeypatch.setattr(repair, "MOST_S", repair.MOST_S / 10)
