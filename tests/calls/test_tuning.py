"""The fastest candidate is kept in a file that may be missing, spoilt, or not to be written, and is forgotten when what
its kernel is made of changes."""

import json
import os
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from labkit import gemm
from labkit.calls import tuning
from labkit.gemm.library.kernel import general
from labkit.places import PACKAGE


@dataclass(frozen=True)
class Way:
    """A candidate: a step of the fp32 ladder."""

    slug: str

    def as_data(self):
        return {"slug": self.slug}

    @property
    def kernels(self):
        return [gemm.step("fp32", self.slug).kernel]


WAYS = [Way("tuned"), Way("tiled"), Way("vectorised")]
QUESTION = "float32 40x50x60"


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    """A cache folder of this test's own."""
    monkeypatch.setattr(tuning, "user_cache_path", lambda name: tmp_path / name)
    forget()
    yield tmp_path
    forget()


def forget():
    """As a new process begins."""
    tuning._stored_choices.cache_clear()
    tuning.source_hash.cache_clear()


def chosen(question=QUESTION, operation="gemm"):
    return tuning.stored_choice(operation, question, WAYS)


def test_a_choice_holds_in_later_processes_for_its_question_and_operation_alone():
    assert chosen() == WAYS[0]
    tuning.store_choice("gemm", QUESTION, WAYS[1])
    assert chosen() == WAYS[1]
    forget()
    assert chosen() == WAYS[1]
    assert chosen("float32 40x50x61") == chosen(operation="conv") == WAYS[0]
    tuning.store_choice("gemm", "another", WAYS[2])
    forget()
    assert chosen() == WAYS[1]


def test_choices_that_another_process_adds_meanwhile_are_kept():
    assert chosen() == WAYS[0]
    file = tuning.cache_file("gemm", tuning.gpu_name())
    tuning.write_choices(file, {QUESTION: tuning._entry(WAYS[1])})
    tuning.store_choice("gemm", "another", WAYS[2])
    forget()
    assert chosen() == WAYS[1]


@pytest.mark.filterwarnings("ignore:.*holds no choices")
@pytest.mark.parametrize(
    "spoil",
    [
        lambda content: content[:30],
        lambda content: "",
        lambda content: "[1, 2]",
        lambda content: "[" * 100_000,
        lambda content: '{"choices": 3}',
        lambda content: json.dumps({"choices": {QUESTION: 3}}),
        lambda content: content.replace('"tiled"', '"no such step"'),
        lambda content: content.replace('"tiled"', "[]"),
    ],
)
def test_a_file_that_says_nothing_is_no_choice(spoil):
    tuning.store_choice("gemm", QUESTION, WAYS[1])
    path = tuning.cache_file("gemm", tuning.gpu_name())
    path.write_text(spoil(path.read_text(encoding="utf-8")), encoding="utf-8")
    forget()
    assert chosen() == WAYS[0]
    tuning.store_choice("gemm", QUESTION, WAYS[1])
    forget()
    assert chosen() == WAYS[1]


def test_a_spoilt_file_is_written_anew_with_a_warning():
    tuning.store_choice("gemm", QUESTION, WAYS[1])
    path = tuning.cache_file("gemm", tuning.gpu_name())
    path.write_text("no JSON", encoding="utf-8")
    forget()
    with pytest.warns(UserWarning, match=r"\.json holds no choices \(JSONDecodeError: .*\): it is written anew"):
        assert chosen() == WAYS[0]
    with pytest.warns(UserWarning, match="holds no choices"):
        tuning.store_choice("gemm", QUESTION, WAYS[2])
    forget()
    with warnings.catch_warnings(action="error"):
        assert chosen() == WAYS[2]


def files(kernel):
    return {path.relative_to(PACKAGE).as_posix() for path in tuning.source_files(kernel)}


def test_a_kernel_is_made_of_its_step_of_device_functions_of_constants_and_of_instructions():
    assert files(gemm.step("fp32", "tiled").kernel) == {"gemm/fp32/s03_tiled.py"}
    assert {"gemm/fp32/s10_tuned.py"} < files(gemm.step("fp32", "tuned").kernel)
    of_the_library = files(general)
    assert {f"gemm/library/{name}.py" for name in ("kernel", "epilogue", "constants")} | {
        "parts/ring.py"
    } <= of_the_library
    assert any("warpgroups" in name for name in of_the_library)
    assert not any(name.startswith(("gemm/fp32", "gemm/interface", "blas")) for name in of_the_library)


def test_a_choice_is_forgotten_when_what_its_kernel_is_made_of_changes_and_no_other_one(monkeypatch, tmp_path):
    tuning.store_choice("gemm", QUESTION, Way("vectorised"))
    tuning.store_choice("gemm", "another", Way("tiled"))
    edited = tmp_path / "edited.py"
    edited.write_text("another kernel")
    sources_of, step = tuning.source_files, PACKAGE / "gemm/fp32/s06_vectorised.py"

    def with_an_edit(kernel):
        return {edited if path == step else path for path in sources_of(kernel)}

    monkeypatch.setattr(tuning, "source_files", with_an_edit)
    forget()
    assert chosen() == WAYS[0]
    assert chosen("another") == Way("tiled")


def test_the_fastest_is_kept_and_a_file_that_cannot_be_written_is_a_warning(monkeypatch):
    monkeypatch.setattr(tuning.timing, "gpu_times_ms", lambda of: {way: 3.0 - n for n, way in enumerate(of)})
    ranked = tuning.tune("gemm", QUESTION, {way: [] for way in WAYS})
    assert list(ranked.values()) == sorted(ranked.values()) and next(iter(ranked)) == chosen() == WAYS[2]

    def refused(*_):
        raise PermissionError(13, os.strerror(13))

    monkeypatch.setattr(tuning, "write_choices", refused)
    with pytest.warns(UserWarning, match="for this process alone"):
        tuning.tune("gemm", "another", {way: [] for way in WAYS[:2]})
    assert chosen("another") == WAYS[1]


def test_threads_that_find_something_at_once_lose_none_of_it():
    def find(thread):
        for n in range(10):
            tuning.store_choice("gemm", f"question {thread} {n}", WAYS[n % 3])

    with ThreadPoolExecutor(6) as threads, warnings.catch_warnings(action="error"):
        list(threads.map(find, range(6)))
    forget()
    assert all(chosen(f"question {thread} {n}") == WAYS[n % 3] for thread in range(6) for n in range(10))


def test_nothing_is_left_where_the_file_cannot_be_put_in_place(folder):
    path = tuning.cache_file("gemm", tuning.gpu_name())
    path.mkdir(parents=True)
    with pytest.warns(UserWarning, match="holds no choices"), pytest.raises(OSError):
        tuning.store_choice("gemm", QUESTION, WAYS[1])
    assert list(path.parent.iterdir()) == [path] and chosen() == WAYS[1]
