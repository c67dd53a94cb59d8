"""pyproject.toml, constraints.txt and environment.yml say the same."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, distributions, requires

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

import labkit
from labkit.places import CHECKOUT

pytestmark = pytest.mark.skipif(CHECKOUT is None, reason="an installed wheel has no such files")


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def pins():
    text = (CHECKOUT / "constraints.txt").read_text(encoding="utf-8")
    found = [Requirement(line) for line in text.splitlines() if line and not line.startswith("#")]
    assert all(str(pin.specifier).startswith("==") for pin in found)
    return {canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in found}


@pytest.fixture(scope="module")
def conda():
    return yaml.safe_load((CHECKOUT / "environment.yml").read_text(encoding="utf-8"))


def is_cuda_wheel(name):
    return name.startswith("nvidia-") or name in ("cuda-bindings", "cuda-toolkit")


def needed(package, extras, seen):
    """Canonical names of all that an installed package needs, by the metadata of what is installed."""
    for line in requires(package) or ():
        requirement = Requirement(line)
        marked = requirement.marker
        if marked and not any(marked.evaluate({"extra": extra}) for extra in ("", *extras)):
            continue
        name = canonicalize_name(requirement.name)
        if name not in seen:
            seen.add(name)
            try:
                needed(name, requirement.extras, seen)
            except PackageNotFoundError:  # an extra of labkit's that this environment does without
                continue
    return seen


def test_each_requirement_is_pinned_to_a_version_it_allows(project, pins):
    extras = project["optional-dependencies"]
    for line in [
        *project["dependencies"],
        *(line for extra in ("book", "grade", "dev", "torch") for line in extras[extra]),
    ]:
        requirement = Requirement(line)
        if requirement.name == project["name"]:  # another extra of its own
            continue
        assert requirement.specifier, f"{requirement.name} has no bounds"
        assert requirement.specifier.contains(pins[canonicalize_name(requirement.name)]), line


def test_everything_that_gets_installed_is_pinned(pins):
    found = needed("labkit-gpu", ("dev", "torch"), set())
    assert "basedpyright" in found and "jupyterlab" in found
    assert not {name for name in found if not is_cuda_wheel(name)} - {*pins, "labkit-gpu"}


@pytest.mark.parametrize("python", ["3.11.0", "3.12.0", "3.13.0"])
def test_each_pinned_version_takes_the_first_release_of_each_python(pins, python):
    """Distributions ship early ones: Debian 12 has 3.11.2."""
    installed = [one for one in distributions() if pins.get(canonicalize_name(one.name)) == one.version]
    allowed = {one.name: SpecifierSet(one.metadata.get("Requires-Python", "")) for one in installed}
    assert "jupyterlab" in allowed
    assert not [name for name, versions in allowed.items() if not versions.contains(python)]


def test_cuda_wheels_are_pinned_in_their_extras_alone(project, pins):
    assert not [name for name in pins if is_cuda_wheel(name)]
    lines = {"cu12": "12.9", "cu13": "13.0", "toolchain": "13.0", "nvidia-cuda-nvdisasm": "13.2"}
    for extra in ("cu12", "cu13", "toolchain"):
        for text in project["optional-dependencies"][extra]:
            requirement = Requirement(text)
            if requirement.name != "labkit-gpu":
                line = lines.get(requirement.name, lines[extra])
                assert str(requirement.specifier).startswith(f"=={line}."), text
                assert str(requirement.marker) == 'sys_platform != "darwin"', text


@pytest.mark.needs("torch")
def test_torch_and_cu13_install_together(project):
    """A torch for GPUs, as the package index has it for Linux, pins the CUDA toolkit too."""
    of_torch, ours = (
        {one.name: one.specifier for one in map(Requirement, lines)}
        for lines in (requires("torch"), project["optional-dependencies"]["cu13"])
    )
    for name in of_torch.keys() & ours.keys():
        (pin,) = ours[name]
        assert of_torch[name].contains(pin.version), name


def test_numpy_stays_below_what_was_tried(project):
    """`labkit/cuda/numpy_names.py` brings numba-cuda 0.30 and NumPy 2.5 together; of 2.6 nothing is known."""
    numpy = next(r for r in map(Requirement, project["dependencies"]) if r.name == "numpy")
    assert numpy.specifier.contains("2.5.0") and not numpy.specifier.contains("2.6.0")


def test_conda_installs_the_same(project, conda):
    python, _, pip = conda["dependencies"]
    assert conda["name"] == "labkit"
    assert python.removeprefix("python") == project["requires-python"]
    assert pip["pip"] == ["--constraint constraints.txt", "--editable .[dev]"]


def test_one_version_everywhere(project):
    citation = yaml.safe_load((CHECKOUT / "CITATION.cff").read_text(encoding="utf-8"))
    assert project["dynamic"] == ["version"]
    assert citation["version"] == labkit.__version__


def test_no_registry_is_named():
    names = "pyproject.toml constraints.txt environment.yml Makefile .ci/run labkit/setup/environment.py".split()
    for name in names:
        text = (CHECKOUT / name).read_text(encoding="utf-8")
        assert not re.search(r"://|index-url|find-links", text), name
