"""CI's own files: they parse, and say what a machine lacks."""

import json
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
    fetch, judge, grade, publish = (workflow["jobs"][name] for name in ("fetch", "judge", "grade", "publish"))
    assert workflow["permissions"] == {}
    assert "secrets" in str(fetch) and "labkit grade" not in str(fetch)
    assert "labkit grade" in str(grade) and "labkit grade" in str(judge)
    for job in (judge, grade, publish):
        assert "secrets" not in str(job) and "github.token" not in str(job)
        assert job.get("permissions", {}) in ({}, {"contents": "read"})
    for job in workflow["jobs"].values():
        assert "write" not in job.get("permissions", {}).values()
        for step in job["steps"]:
            assert "${{" not in step.get("run", ""), "an input stands in a script: hand it over by env"
            if step.get("uses", "").startswith("actions/checkout"):
                assert step["with"]["persist-credentials"] is False


@pytest.mark.parametrize("count", ["1", "8", "256"])
def test_the_workflow_numbers_the_machines_that_judge_and_draws_their_seed(tmp_path, count):
    jobs = yaml.safe_load((CHECKOUT / ".github/workflows/grade.yml").read_text(encoding="utf-8"))["jobs"]
    (script,) = [step["run"] for step in jobs["fetch"]["steps"] if step.get("id") == "plan"]
    environment = {**os.environ, "SHARDS": count, "GITHUB_OUTPUT": str(tmp_path / "outputs")}
    subprocess.run(["bash", "-e", "-c", script], env=environment, check=True)
    outputs = dict(line.split("=") for line in (tmp_path / "outputs").read_text().splitlines())
    assert json.loads(outputs["shards"]) == [*range(1, int(count) + 1)]
    assert 0 <= int(outputs["seed"]) < 2**32
    assert jobs["judge"]["strategy"]["matrix"] == {"shard": "${{ fromJSON(needs.fetch.outputs.shards) }}"}


@pytest.mark.parametrize("count", ["", "some", "2.x"])
def test_a_number_of_machines_that_is_none_ends_the_workflow_at_once(tmp_path, count):
    jobs = yaml.safe_load((CHECKOUT / ".github/workflows/grade.yml").read_text(encoding="utf-8"))["jobs"]
    script = jobs["fetch"]["steps"][0]["run"]
    environment = {**os.environ, "SHARDS": count, "GITHUB_OUTPUT": str(tmp_path / "outputs")}
    assert subprocess.run(["bash", "-e", "-c", script], env=environment, capture_output=True).returncode
    assert not (tmp_path / "outputs").exists()


def test_a_machine_that_fails_stops_no_other_and_its_part_is_judged_at_the_end():
    jobs = yaml.safe_load((CHECKOUT / ".github/workflows/grade.yml").read_text(encoding="utf-8"))["jobs"]
    judge, grade = jobs["judge"], jobs["grade"]
    assert judge["strategy"]["fail-fast"] is False
    assert judge["steps"][-1]["if"] == "always()" and judge["steps"][-1]["with"]["name"] == "judged-${{ matrix.shard }}"
    assert grade["if"] == "${{ !cancelled() && needs.fetch.result == 'success' }}"
    assert {"pattern": "judged-*", "merge-multiple": True, "path": "grades"} in [s.get("with") for s in grade["steps"]]
    for job in (judge, grade):
        (step,) = [step for step in job["steps"] if step.get("name") in ("judge", "grade")]
        assert step["env"]["SEED"] == "${{ needs.fetch.outputs.seed }}" and '--seed "$SEED" $OPTIONS' in step["run"]


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
