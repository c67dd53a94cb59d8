"""CI's own files: they parse, and say what a machine lacks."""

import os
import shutil
import subprocess
import sys

import pytest
import yaml

from labkit.places import CHECKOUT

pytestmark = pytest.mark.skipif(CHECKOUT is None or sys.platform == "win32", reason="needs a checkout and bash")
WORKFLOWS = sorted((CHECKOUT / ".github/workflows").glob("*.yml")) if CHECKOUT else []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_every_step_of_a_workflow_is_a_script_that_parses(path):
    jobs = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]
    for job in jobs.values():
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step)
            script = step.get("run", "")
            subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def test_ci_names_what_is_missing_where_it_cannot_install(tmp_path):
    for tool in ("bash", "dirname", "python3"):
        (tmp_path / tool).symlink_to(sys.executable if tool == "python3" else shutil.which(tool))
    (tmp_path / "id").write_text("#!/bin/sh\necho 1000\n")
    (tmp_path / "id").chmod(0o755)
    run = [shutil.which("bash"), CHECKOUT / ".ci/run"]
    done = subprocess.run(run, env={"PATH": str(tmp_path)}, capture_output=True, text=True)
    assert done.returncode == 1
    assert "install make git chromium" in done.stderr
    assert os.access(CHECKOUT / ".ci/run", os.X_OK)
