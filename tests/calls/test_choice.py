"""Which step computes a call: by recorded times of this GPU or one like it, else by the ladder's order."""

import ast
import warnings
from dataclasses import fields, replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest
from described import described

from labkit import attention, cuda, norm, results, softmax
from labkit.arrays.workspace import CountingWorkspace
from labkit.attention.interface import choice as attention_choice
from labkit.calls import choice, tuning
from labkit.calls.choice import CurrentGpu, StepChooser, override_choice, sort_by_estimates
from labkit.formats import BF16, FORMATS, FP16, FP32
from labkit.ladder import Ladder, ladder
from labkit.norm.interface import choice as norm_choice
from labkit.ptx import capabilities
from labkit.results import Results
from labkit.softmax import row_steps

H100 = "nvidia-h100-80gb-hbm3"
WITHIN = 1.02
CHOSEN = {  # what chooses among the steps of a ladder
    **dict.fromkeys(("norm/rows", "norm/rows_backward", "norm/batch", "norm/batch_backward"), norm_choice.choose_step),
    **dict.fromkeys(("norm/channels_last", "norm/channels_last_backward"), norm_choice.choose_step),
    "norm/batch_inference": norm_choice.choose_step,
    "softmax/forward": row_steps.choose_step,
    "softmax/backward": row_steps.choose_step,
    "attention/forward": attention_choice.choose_step,
    "attention/backward": attention_choice.choose_step,
    "attention/backward in any order": lambda *of: attention_choice.choose_step(*of, deterministic=False),
    "attention/decode": lambda arrays, problem, *of: attention_choice.choose_for_cache(
        arrays, problem, *of, same_lengths=not problem.ragged
    ),
}


@pytest.fixture(autouse=True)
def as_on_a_gpu_of_its_own(monkeypatch, tmp_path):
    """Nothing is tuned, and what is quick to simulate counts no more than anything else."""
    monkeypatch.setattr(tuning, "user_cache_path", lambda name: tmp_path / name)
    monkeypatch.setattr(choice, "is_quick", lambda step: False)
    forget()
    yield
    forget()


def forget():
    for known in (choice._ranked, choice._recorded, choice._by_problem, choice.machine_for, choice._warn_about_gpu):
        known.cache_clear()
    tuning._stored_choices.cache_clear()


def ladder_named(path: str) -> Ladder:
    return ladder(*path.split(" ")[0].split("/"))


def recorded(one: Ladder) -> dict:
    """Times in ms of the steps by problem and format; those of formats of the same size where there are no others."""
    steps, times = {step.slug: step for step in one}, {}
    for row in results.load(one.record, H100).rows:
        if row["step"] in steps:
            kind = steps[row["step"]].problem
            problem = kind(**{field.name: row[field.name] for field in fields(kind)})
            times.setdefault((problem, FORMATS[row["dtype"]]), {})[row["step"]] = row["time_ms"]
    return {
        (problem, format): {
            slug: time_ms
            for (other, known), of in [*times.items(), ((problem, format), found)]
            for slug, time_ms in of.items()
            if other == problem and known.itemsize == format.itemsize
        }
        for (problem, format), found in times.items()
    }


def chosen_slug(path, problem, format, only=None):
    """What is chosen, of all steps or of a single one; raises ValueError where that is not to be chosen."""

    def instead(name, question, candidates):
        return [one for one in candidates if only in (None, one.step.slug)]

    with override_choice(instead):
        return CHOSEN[path](described(problem, format), problem, format, CountingWorkspace()).step.slug


# --- records -------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", CHOSEN)
def test_on_an_h100_no_recorded_problem_has_a_step_that_is_faster_than_the_chosen_one(path):
    times = recorded(ladder_named(path))
    assert len(times) >= 4
    for (problem, format), of in times.items():
        slug = chosen_slug(path, problem, format)
        assert slug in of, f"{slug} was not recorded for {problem} in {format}"
        for other, time_ms in of.items():
            if WITHIN * time_ms < of[slug]:
                with pytest.raises(ValueError, match="no step takes"):
                    chosen_slug(path, problem, format, only=other)


def test_every_ladder_that_users_call_is_chosen_from():
    called = {path.split(" ")[0] for path in CHOSEN}
    for operation in ("norm", "softmax", "attention"):
        package = import_module(f"labkit.{operation}")
        kinds = {ladder_named(path).module.PROBLEM for path in called if path.startswith(operation)}
        for path in Path(package.__file__).parent.glob("*/s0*.py"):
            one = ladder(operation, path.parent.name)
            if one.module.PROBLEM in kinds:
                assert one.path in called


@pytest.mark.parametrize(
    ("path", "problem", "format", "slug"),
    [
        ("softmax/forward", softmax.Forward(2**20, 64), FP32, "warps"),  # by the records of 256 in bfloat16
        ("softmax/forward", softmax.Forward(100, 32), BF16, "warps"),
        ("softmax/forward", softmax.Forward(3, 50_000), FP32, "clusters"),
        ("norm/rows", norm.RowForward(7, 200), FP32, "warps"),
        ("norm/rows", norm.RowForward(7, 6000), FP32, "on_chip"),
        ("norm/rows", norm.RowForward(7, 50_000), BF16, "overlapped"),
        ("norm/rows", norm.RowForward(7, 120_000), BF16, "clusters"),
        ("norm/rows", norm.RowForward(7, 200_000), FP32, "three_reads"),
        ("norm/rows_backward", norm.RowBackward(7, 500), FP32, "warps"),
        ("norm/rows_backward", norm.RowBackward(7, 40_000), BF16, "sums_first"),
        ("norm/batch", norm.BatchForward(8, 64, 7, 7), BF16, "in_registers"),
        ("norm/batch", norm.BatchForward(32, 512, 14, 14), FP32, "in_registers"),
        ("norm/batch", norm.BatchForward(32, 128, 56, 56), FP32, "overlapped"),
        ("norm/batch", norm.BatchForward(64, 256, 55, 55), FP32, "one_read"),  # no rows of 128 bytes
        ("norm/channels_last", norm.BatchForward(64, 128, 56, 56, True, "NHWC"), BF16, "first_kept"),
        ("norm/channels_last_backward", norm.BatchBackward(16, 256, 7, 7, True, "NHWC"), FP32, "in_registers"),
        ("attention/forward", attention.AttentionForward(1, 3, 500, 40, 700, causal=True), FP16, "persistent"),
        ("attention/forward", attention.AttentionForward(1, 3, 500, 256), BF16, "ping_pong"),
        ("attention/backward", attention.AttentionBackward(1, 3, 500, 128), BF16, "wgmma"),
        ("attention/backward in any order", attention.AttentionBackward(1, 3, 500, 128), FP16, "bulk_reduction"),
        ("attention/backward in any order", attention.AttentionBackward(1, 3, 500, 136), FP16, "mma"),
    ],
    ids=str,
)
def test_problems_that_were_not_recorded_go_by_those_that_are_near(path, problem, format, slug):
    assert chosen_slug(path, problem, format) == slug


ROWS = StepChooser("softmax", (("columns", 1),))


@pytest.fixture
def records(monkeypatch):
    """A function that says what was recorded: times in ms by slug, columns and format, on this very GPU."""

    def record(times, **header):
        rows = [
            {"step": slug, "dtype": format.name, "rows": 64, "columns": columns, "hard": False, "time_ms": time_ms}
            for (slug, columns, format), time_ms in times.items()
        ]
        monkeypatch.setattr(results, "nearest", lambda *_: {results.slug(tuning.gpu_name()): (9, 0)} if rows else {})
        monkeypatch.setattr(results, "load", lambda *_: Results("softmax_rows", {}, rows))
        forget()

    return record


def order(columns=1000, format=FP32, chooser=ROWS):
    return [step.slug for step in chooser.ranked(softmax.Forward(64, columns), format)]


LATER_FIRST = ["lanes", "clusters", "unaligned", "warps", "on_chip", "online", "three_reads"]


def test_what_was_recorded_comes_before_what_was_not_which_follows_the_ladder_from_its_end(records):
    records({})
    assert order() == LATER_FIRST
    records({("three_reads", 1000, FP32): 1.0, ("on_chip", 1000, FP32): 2.0})
    assert order() == ["three_reads", "on_chip", "lanes", "clusters", "unaligned", "warps", "online"]


def test_the_recorded_problem_itself_decides_whatever_its_neighbours_say(records):
    times = {("warps", 1024, FP32): 1.01, ("on_chip", 1024, FP32): 1.0}
    records(times | {("warps", columns, FP32): 1.0 for columns in (1000, 1050)} | {("on_chip", 1000, FP32): 9.0})
    assert order(1024)[:2] == ["on_chip", "warps"]
    assert order(1010)[:2] == ["warps", "on_chip"]


def test_of_problems_that_are_alike_in_what_counts_the_very_same_one_decides(records, monkeypatch):
    rows = [
        {"step": slug, "dtype": "float32", "rows": count, "columns": 1000, "hard": False, "time_ms": time_ms}
        for slug, count, time_ms in (("warps", 64, 1.0), ("on_chip", 64, 1.1), ("warps", 65, 9.0), ("on_chip", 65, 1.0))
    ]
    records({("warps", 1000, FP32): 1.0})
    monkeypatch.setattr(results, "load", lambda *_: Results("softmax_rows", {}, rows))
    forget()
    assert order()[0] == "warps"
    assert ROWS.ranked(softmax.Forward(66, 1000), FP32)[0].slug == "on_chip"


def test_a_step_that_is_fast_where_it_was_recorded_does_not_win_far_outside(records):
    """`warps` is the fastest for narrow rows, `clusters` for wide ones, and each was recorded there alone."""
    records(
        {("warps", 256, FP32): 1.0, ("on_chip", 256, FP32): 1.2, ("clusters", 65536, FP32): 1.0}
        | {("on_chip", 65536, FP32): 1.2}
    )
    assert order(300)[0] == "warps" and order(50_000)[0] == "clusters"


def test_nearer_records_count_more(records):
    records(
        {("warps", 256, FP32): 1.0, ("on_chip", 256, FP32): 1.5, ("warps", 4096, FP32): 1.5, ("on_chip", 4096, FP32): 1}
    )
    assert order(400)[0] == "warps" and order(3000)[0] == "on_chip"


def test_another_format_of_the_same_size_counts_where_this_one_was_not_recorded(records):
    records({("warps", 1000, BF16): 1.0, ("on_chip", 1000, BF16): 2.0, ("warps", 1000, FP32): 5.0})
    assert order(format=BF16)[0] == "warps"
    one, problem = ladder("softmax", "forward"), softmax.Forward(64, 1000)
    assert choice.recorded_ms(one.step("on_chip"), problem, FP16) == 2.0
    assert choice.recorded_ms(one.step("on_chip"), problem, FP32) is None
    assert choice.recorded_ms(one.step("on_chip"), replace(problem, rows=65), BF16) is None


def test_a_record_of_another_size_of_elements_counts_less(records):
    bf16 = {("warps", 256, BF16): 1.0, ("on_chip", 256, BF16): 2.0}
    records(bf16)
    assert order(256)[0] == "warps"
    records(bf16 | {("warps", 1024, FP32): 2.0, ("on_chip", 1024, FP32): 1.0})
    assert order(512)[0] == "on_chip"


def test_rows_of_an_odd_width_go_by_records_of_odd_widths(records):
    records(
        {("on_chip", 1024, FP32): 1.0, ("unaligned", 1024, FP32): 2.0, ("on_chip", 1001, FP32): 2.0}
        | {("unaligned", 1001, FP32): 1.0}
    )
    assert {order(columns, chooser=row_steps.ROWS)[0] for columns in (1016, 1040)} == {"on_chip"}
    assert {order(columns, chooser=row_steps.ROWS)[0] for columns in (1003, 1023)} == {"unaligned"}


def test_what_a_call_does_not_take_is_neither_chosen_nor_compared(records):
    records({("warps", 1000, FP32): 1.0, ("on_chip", 1000, FP32): 2.0})
    chooser = replace(ROWS, suits=_is_no_warps)
    assert order(chooser=chooser) == [slug for slug in LATER_FIRST if slug != "warps"]  # on_chip beside nothing


def _is_no_warps(step, problem):
    return step.slug != "warps"


def test_rows_that_lack_a_field_or_name_a_step_that_is_gone_are_left_out(records, monkeypatch):
    rows = [
        {"step": "warps", "dtype": "float32", "rows": 64, "time_ms": 1.0},
        {"step": "gone", "dtype": "float32", "rows": 64, "columns": 1000, "hard": False, "time_ms": 1.0},
        {"step": "on_chip", "dtype": "float4", "rows": 64, "columns": 1000, "hard": False, "time_ms": 1.0},
    ]
    records({("warps", 1000, FP32): 1.0})
    monkeypatch.setattr(results, "load", lambda *_: Results("softmax_rows", {}, rows))
    forget()
    assert order() == LATER_FIRST


# --- GPUs ----------------------------------------------------------------------------------------


def gpu(monkeypatch, name, capability, sms=132):
    here = SimpleNamespace(
        name=name,
        compute_capability=capability,
        MULTIPROCESSOR_COUNT=sms,
        MAX_SHARED_MEMORY_PER_BLOCK_OPTIN=99 * 1024,
    )
    monkeypatch.setattr(cuda, "get_current_device", lambda: here)
    forget()


def test_a_gpu_without_records_goes_by_one_of_its_capability_and_says_so_once(monkeypatch):
    gpu(monkeypatch, "NVIDIA H200", (9, 0))
    monkeypatch.setattr(choice.cuda, "on_gpu", lambda: True)
    with pytest.warns(UserWarning, match=f"on this GPU, NVIDIA H200, and those of {H100} choose their kernels") as told:
        assert order(8192)[0] == "on_chip" and order(65536)[0] == "clusters"
        assert choice.machine_for("attention", CurrentGpu.now()) == H100
    assert len(told) == 1
    with warnings.catch_warnings(action="error"):
        assert order(8000)[0] == "on_chip"


def test_records_of_this_very_gpu_need_no_word(monkeypatch):
    gpu(monkeypatch, "NVIDIA H100 80GB HBM3", (9, 0))
    monkeypatch.setattr(choice.cuda, "on_gpu", lambda: True)
    with warnings.catch_warnings(action="error"):
        assert order(8192)[0] == "on_chip"


def test_a_gpu_of_another_capability_goes_by_the_ladder_and_what_it_has_instructions_for(monkeypatch):
    gpu(monkeypatch, "NVIDIA B200", (10, 0))
    assert order(8192) == LATER_FIRST
    gpu(monkeypatch, "NVIDIA A100-SXM4-80GB", (8, 0))
    assert order(8192) == [slug for slug in LATER_FIRST if slug not in ("clusters", "unaligned")]
    assert choice.recorded_ms(ladder("softmax", "forward").step("warps"), softmax.Forward(262144, 256), FP32) is None


def test_two_gpus_of_a_process_have_an_order_each(monkeypatch):
    first = order(8192)
    here = SimpleNamespace(name="NVIDIA T4", compute_capability=(7, 5), MULTIPROCESSOR_COUNT=40)
    monkeypatch.setattr(cuda, "get_current_device", lambda: here)
    assert order(8192) != first


def test_what_an_older_gpu_gets_has_instructions_for_it(monkeypatch):
    for capability in ((7, 5), (8, 0), (8, 9), (12, 0)):
        gpu(monkeypatch, "a GPU", capability)
        for path, problem, format in (
            ("norm/rows", norm.RowForward(3, 40_000), FP32),
            ("norm/batch", norm.BatchForward(64, 256, 56, 56), BF16),
            ("norm/channels_last", norm.BatchForward(64, 256, 56, 56, True, "NHWC"), BF16),
            ("softmax/backward", softmax.Backward(3, 40_000), FP32),
            ("attention/forward", attention.AttentionForward(1, 1, 9, 64), FP32),
        ):
            slug = chosen_slug(path, problem, format)
            assert capabilities.can_run(ladder_named(path).step(slug).kernel, format.number, capability)


def test_a_gpu_for_which_there_is_no_step_is_told_what_to_do(monkeypatch):
    gpu(monkeypatch, "Tesla T4", (7, 5))
    with pytest.raises(
        ValueError,
        match="no step takes attention 1x1x9x64 in float16 on a GPU of compute capability 7.5: convert Q, K and V",
    ):
        chosen_slug("attention/forward", attention.AttentionForward(1, 1, 9, 64), FP16)
    with pytest.raises(ValueError, match="no step takes attention .* in bfloat16 .*: take a newer GPU"):
        chosen_slug("attention/decode", attention.AttentionDecode(1, 1, 1, 64, 90), BF16)


def test_sizes_that_no_step_takes_are_told_with_the_reason_of_each():
    with pytest.raises(
        ValueError,
        match=r"no step takes rms norm 1x131073 rms in bfloat16 on a GPU of compute capability 9\.0 \(.*"
        r"rows/warps: a row has 131073 values, and a warp keeps 1024 in registers.*\): convert them to float32",
    ):
        chosen_slug("norm/rows", norm.RowForward(1, 131_073, "rms"), BF16)


def test_a_step_whose_blocks_need_more_shared_memory_than_there_is_is_passed_over(monkeypatch):
    problem = norm.RowForward(1024, 65_536)
    assert chosen_slug("norm/rows", problem, BF16) == "overlapped"
    gpu(monkeypatch, "NVIDIA H100 with less of it", (9, 0))
    assert chosen_slug("norm/rows", problem, BF16) == "clusters"
    with pytest.raises(ValueError, match="rows/overlapped: a block takes more than the 101376 bytes of shared memory"):
        chosen_slug("norm/rows", problem, BF16, only="overlapped")


# --- steps ---------------------------------------------------------------------------------------


def test_a_step_that_gets_hard_operands_wrong_is_never_chosen():
    problem = norm.BatchForward(32, 64, 112, 112)
    ranked = {step.slug for step in norm_choice.IMAGES.ranked(problem, FP32)}
    assert not ranked & {"centred", "sums", "welford"} and {"two_passes", "shifted", "fused", "overlapped"} <= ranked
    assert not choice._is_exact(ladder("attention", "fp8").step("linear_codes"))


def test_an_array_that_tma_does_not_move_leaves_its_step_to_the_next():
    problem = norm.BatchForward(64, 256, 56, 56)
    arrays = described(problem, FP32)
    shifted = (replace(arrays[0], address=arrays[0].address + 4), *arrays[1:])
    assert norm_choice.choose_step(arrays, problem, FP32, CountingWorkspace()).step.slug == "overlapped"
    assert norm_choice.choose_step(shifted, problem, FP32, CountingWorkspace()).step.slug == "one_read"


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("kind", [norm.BatchForward, norm.BatchBackward])
def test_blocks_that_keep_a_channel_run_all_at_once_or_another_step_is_chosen(kind, layout):
    path = {"NCHW": "batch", "NHWC": "channels_last"}[layout] + "_backward" * (kind is norm.BatchBackward)
    few, many = (kind(32, C, 7, 7, True, layout) for C in (512, 65536))
    assert chosen_slug(f"norm/{path}", few, FP32) == "in_registers" != chosen_slug(f"norm/{path}", many, FP32)


def test_no_name_of_a_step_is_typed_where_steps_are_chosen():
    for operation, module in (("norm", norm_choice), ("softmax", row_steps), ("attention", attention_choice)):
        steps = [step for one in choice.ladders(operation) for step in one]
        slugs = {step.slug for step in steps} - {field.name for step in steps for field in fields(step.problem)}
        for source in (module.__file__, choice.__file__):
            nodes = ast.walk(ast.parse(Path(source).read_text(encoding="utf-8")))
            typed = {node.value for node in nodes if isinstance(node, ast.Constant)} & slugs
            assert not typed, f"{source} names {typed}"


def test_estimates_are_asked_in_their_order():
    times, model = {"a": 3.0, "c": 1.0}, {"a": 0.5, "b": 2.0, "d": 9.0}
    assert sort_by_estimates("eabcd", times.get, model.get) == ["c", "b", "a", "d", "e"]
    assert sort_by_estimates("dcba") == list("dcba")


def test_choices_are_kept_within_bounds():
    for known in (choice._ranked, choice._recorded, choice._by_problem, choice.machine_for, choice._is_exact):
        assert known.cache_info().maxsize is not None
