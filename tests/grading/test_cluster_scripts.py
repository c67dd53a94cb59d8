"""The recipes for clusters: SLURM's script with an `sbatch` of ours, the pods' command in a shell."""

import os
import shutil
import subprocess
import sys

import pytest
import yaml
from handed_in import SAXPY, hand_in

from labkit import places
from labkit.grading.grade import grade

pytestmark = [
    pytest.mark.skipif(places.CHECKOUT is None or sys.platform == "win32", reason="needs a checkout and bash"),
    pytest.mark.long,
]
CLUSTER = (places.CHECKOUT or places.PACKAGE) / ".github/cluster"
SBATCH = """#!/bin/bash
# Runs the job at once, a copy of its script for each index of the array, and prints its number as SLURM does.
set -euo pipefail
echo "$*" >> calls
count=0
while [[ $1 == --* ]]; do
    case $1 in --array=1-*) count=${1#--array=1-} ;; esac
    shift
done
copy=$(mktemp)
cp -- "$1" "$copy"
shift
export SLURM_JOB_ID=7 SLURM_CPUS_PER_TASK=2
if [ "$count" = 0 ]; then bash "$copy" "$@" >> out 2>&1; fi
for ((index = 1; index <= count; index++)); do
    SLURM_ARRAY_TASK_ID=$index SLURM_ARRAY_TASK_COUNT=$count bash "$copy" "$@" >> out 2>&1
done
echo "7;here"
"""
ECHO = '#!/bin/sh\necho "$*" >> labkit-calls\n'
LABKIT = f'#!/bin/sh\nPYTHONPATH="{places.PACKAGE.parent}" exec "{sys.executable}" -m labkit.cli "$@"\n'


@pytest.fixture
def shell(tmp_path, monkeypatch):
    """Return a function that runs a command where `sbatch` is ours and `labkit` is as given; it returns the calls."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")

    def run(*command, labkit=ECHO, **environment):
        for name, text in {"sbatch": SBATCH, "labkit": labkit}.items():
            (tmp_path / "bin" / name).write_text(text)
            (tmp_path / "bin" / name).chmod(0o755)
        done = subprocess.run(command, cwd=tmp_path, env={**os.environ, **environment}, capture_output=True, text=True)
        said = (tmp_path / "out").read_text() if (tmp_path / "out").exists() else ""
        assert done.returncode == 0, done.stdout + done.stderr + said
        calls = tmp_path / ("calls" if command[0].endswith("slurm.sh") else "labkit-calls")
        return calls.read_text().splitlines() if calls.exists() else []

    return run


@pytest.fixture
def students(tmp_path):
    hand_in(tmp_path / "submissions" / "ada" / "02.ipynb", "first-gpu-matmul")
    hand_in(tmp_path / "submissions" / "ben" / "02.ipynb", "first-gpu-matmul", e1=SAXPY.replace("+ y", "- y"))
    return tmp_path / "submissions"


def read_manifest(name):
    return [*yaml.safe_load_all((CLUSTER / f"{name}.yaml").read_text(encoding="utf-8"))]


def read_pod(name):
    (pod,) = [part for part in read_manifest(name) if part["kind"] in ("Job", "Pod")]
    return pod["spec"]["template"]["spec"] if pod["kind"] == "Job" else pod["spec"]


def test_the_array_judges_all_parts_and_a_last_job_waits_for_it(shell, tmp_path):
    script = str(CLUSTER / "slurm.sh")
    options = ["submissions", "--deadline", "2026-11-30 23:59"]
    array, last = shell(script, "3", *options)
    seed = array.split(" --seed ")[1].split()[0]
    told = f"--seed {seed} submissions --deadline 2026-11-30 23:59"
    assert array == f"--parsable --array=1-3 {script} part {told}"
    assert last == f"--dependency=afterany:7 {script} whole {told}"
    shared = f"grade {told} --out grades --workers 2"
    expected = [*(f"{shared} --shard {number}/3" for number in (1, 2, 3)), shared]
    assert (tmp_path / "labkit-calls").read_text().splitlines() == expected


def test_a_later_run_keeps_the_seed(shell, tmp_path):
    (tmp_path / "grades").mkdir()
    (tmp_path / "grades" / "judgements-1-of-3.jsonl").touch()
    assert not any("--seed" in call for call in shell(str(CLUSTER / "slurm.sh"), "2", "submissions"))


def test_pods_judge_all_parts(shell):
    (job,) = read_manifest("kubernetes-judge")
    container = read_pod("kubernetes-judge")["containers"][0]
    seed, count = container["env"][0]["value"], job["spec"]["completions"]
    for index in range(count):
        calls = shell(*container["command"], SEED=seed, JOB_COMPLETION_INDEX=str(index))
    shared = f"grade submissions --out grades --seed {seed} --shard"
    assert calls == [f"{shared} {number}/{count}" for number in range(1, count + 1)]


def test_pods_have_no_secret_and_no_rights():
    for name in ("kubernetes-judge", "kubernetes-desk"):
        pod = read_pod(name)
        assert pod["automountServiceAccountToken"] is False and "secret" not in str(read_manifest(name)).lower()
        assert pod["securityContext"]["runAsNonRoot"] is True
        (container,) = pod["containers"]
        assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
        assert container["resources"]["limits"] == container["resources"]["requests"]
        assert {"name": "class", "mountPath": "/class"} in container["volumeMounts"]


@pytest.mark.skipif(not shutil.which("kubectl"), reason="needs kubectl")
@pytest.mark.parametrize("name", ["kubernetes-judge", "kubernetes-desk"])
def test_kubectl_knows_every_field(name):
    """It drops fields that it does not know."""
    command = ["kubectl", "annotate", "--local", "-o", "yaml", "-f", CLUSTER / f"{name}.yaml", "a=b"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    for own, read in zip(read_manifest(name), yaml.safe_load_all(done.stdout), strict=True):
        assert find_missing(own, read) == []


def find_missing(own, read, path=""):
    if isinstance(own, dict):
        return [fault for key in own for fault in find_missing(own[key], (read or {}).get(key), f"{path}.{key}")]
    if isinstance(own, list):
        pairs = zip(own, read or [None] * len(own), strict=True)
        return [fault for n, pair in enumerate(pairs) for fault in find_missing(*pair, f"{path}[{n}]")]
    return [] if own == read else [path]


def test_the_image_is_made_by_the_commands_of_the_workflow():
    """They are tried there."""
    lines = (CLUSTER / "Dockerfile").read_text(encoding="utf-8").splitlines()
    workflow = yaml.safe_load((CLUSTER.parent / "workflows/grade.yml").read_text(encoding="utf-8"))
    steps = [
        step.get("run", "").replace('"$RUNNER_TEMP/warm"', "/tmp/warm") for step in workflow["jobs"]["judge"]["steps"]
    ]
    for command in [line.removeprefix("RUN ") for line in lines if "labkit.setup" in line or "labkit grade" in line]:
        assert command in steps


@pytest.mark.sample(1)
@pytest.mark.parametrize("cluster", ["slurm", "kubernetes"])
def test_a_cluster_grades_as_one_machine_does(shell, students, tmp_path, cluster):
    expected = grade([students], tmp_path / "whole", seed=7)
    if cluster == "slurm":
        shell(str(CLUSTER / "slurm.sh"), "2", "submissions", "--seed", "7", labkit=LABKIT)
    else:
        command = read_pod("kubernetes-judge")["containers"][0]["command"]
        for index in (0, 1):  # the others find nothing left
            shell(*command, labkit=LABKIT, SEED="7", JOB_COMPLETION_INDEX=str(index))
    names = {path.name for path in (tmp_path / "grades").glob("judgements-*")}
    assert names == {f"judgements-{number}-of-{2 if cluster == 'slurm' else 8}.jsonl" for number in (1, 2)}
    assert grade([students], tmp_path / "grades") == expected
    for name in ("grades.json", "summary.md", "feedback.zip"):
        assert (tmp_path / "grades" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
