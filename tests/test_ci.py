"""CI's own files: they parse, and say what a machine lacks."""

import os
import re
import shutil
import subprocess
import sys

import pytest
import yaml

from labkit.places import CHECKOUT
from labkit.running import mlir

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


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit(path):
    """A tag can be moved to other code; what a commit holds stays."""
    for job in yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values():
        for step in job["steps"]:
            assert re.search(r"@[0-9a-f]{40}$", step.get("uses", f"@{40 * '0'}"))


def test_the_package_whose_names_are_known_is_the_one_that_ci_installs():
    workflow = (CHECKOUT / ".github/workflows/test.yml").read_text(encoding="utf-8")
    assert f"numba-cuda-mlir=={mlir.VERSION}\n" in workflow


def test_the_token_for_submissions_is_where_nothing_of_a_student_is_graded():
    workflow = yaml.safe_load((CHECKOUT / ".github/workflows/grade.yml").read_text(encoding="utf-8"))
    fetch, grade, publish = (workflow["jobs"][name] for name in ("fetch", "grade", "publish"))
    assert workflow["permissions"] == {}
    assert "secrets" in str(fetch) and "labkit grade" not in str(fetch)
    assert "labkit grade" in str(grade)
    for job in (grade, publish):
        assert "secrets" not in str(job) and "github.token" not in str(job)
    for job in workflow["jobs"].values():
        assert "write" not in job.get("permissions", {}).values()
        for step in job["steps"]:
            assert "${{" not in step.get("run", ""), "an input stands in a script: hand it over by env"
            if step.get("uses", "").startswith("actions/checkout"):
                assert step["with"]["persist-credentials"] is False


def test_a_workflow_goes_on_past_what_is_not_graded_and_fails_at_its_end():
    jobs = yaml.safe_load((CHECKOUT / ".github/workflows/grade.yml").read_text(encoding="utf-8"))["jobs"]
    for name, step in (("fetch", "collect"), ("grade", "grade")):
        (script,) = [s["run"] for s in jobs[name]["steps"] if s.get("name") == step]
        assert script.rstrip().endswith("|| [ $? = 3 ]")
    assert "exit 3" in jobs["publish"]["steps"][-1]["run"]


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
