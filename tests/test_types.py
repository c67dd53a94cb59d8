"""The types of the host code agree: basedpyright finds nothing (pyproject.toml says what it reads)."""

import subprocess
import sys

import pytest

from labkit import places


@pytest.mark.long
def test_types_agree():
    checked = subprocess.run(
        [sys.executable, "-m", "basedpyright"], capture_output=True, text=True, cwd=places.CHECKOUT
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
