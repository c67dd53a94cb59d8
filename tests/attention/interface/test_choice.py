"""Which step computes attention: on GPUs of other kinds, with the same bits each time, and which one reads a cache."""

from types import SimpleNamespace

import pytest
from described import described

from labkit import attention, cuda
from labkit.arrays.workspace import CountingWorkspace
from labkit.attention.interface.choice import choose_for_cache, choose_step
from labkit.calls import choice, tuning
from labkit.formats import BF16, FP16, FP32


@pytest.fixture(autouse=True)
def as_on_a_gpu(monkeypatch, tmp_path):
    """Nothing is tuned, and what is quick to simulate counts no more than anything else."""
    monkeypatch.setattr(tuning, "user_cache_path", lambda name: tmp_path / name)
    monkeypatch.setattr(choice, "is_quick", lambda step: False)
    tuning._stored_choices.cache_clear()
    yield
    tuning._stored_choices.cache_clear()


def gpu(monkeypatch, capability):
    here = SimpleNamespace(
        name=f"a GPU of compute capability {capability}",
        compute_capability=capability,
        MULTIPROCESSOR_COUNT=132,
        MAX_SHARED_MEMORY_PER_BLOCK_OPTIN=(227 if capability >= (9, 0) else 163) * 1024,
    )
    monkeypatch.setattr(cuda, "get_current_device", lambda: here)


def slug(problem, format, **options):
    return choose_step(described(problem, format), problem, format, CountingWorkspace(), **options).step.slug


@pytest.mark.parametrize(
    ("capability", "head_dim", "name"),
    [
        ((9, 0), 64, "persistent"),
        ((9, 0), 128, "persistent"),
        ((9, 0), 192, "ping_pong"),
        ((9, 0), 256, "ping_pong"),
        ((8, 0), 64, "pipelined"),
        ((12, 0), 256, "pipelined"),
    ],
)
def test_the_step_is_the_one_for_the_format_the_heads_and_the_gpu(monkeypatch, capability, head_dim, name):
    gpu(monkeypatch, capability)
    problem = attention.AttentionForward(2, 4, 4096, head_dim)
    assert slug(problem, FP32) == "q_outer"
    assert slug(problem, BF16) == slug(problem, FP16) == name


def test_an_old_gpu_has_no_step_for_16_bits(monkeypatch):
    gpu(monkeypatch, (7, 5))
    problem = attention.AttentionForward(2, 4, 100, 64)
    assert slug(problem, FP32) == "q_outer"
    with pytest.raises(
        ValueError, match=r"in float16 on a GPU of compute capability 7\.5: convert Q, K and V to float32"
    ):
        slug(problem, FP16)


@pytest.mark.parametrize(
    ("head_dim", "format", "slugs"),
    [
        (128, BF16, ("wgmma", "bulk_reduction")),
        (64, FP16, ("wgmma", "bulk_reduction")),
        (136, BF16, ("mma", "mma")),
        (64, FP32, ("recomputed", "recomputed")),
    ],
)
def test_only_who_needs_no_same_bits_gets_sums_in_any_order(head_dim, format, slugs):
    problem = attention.AttentionBackward(2, 4, 4096, head_dim)
    assert tuple(slug(problem, format, deterministic=same) for same in (True, False)) == slugs
    assert slug(problem, format) == slugs[0]


CHOSEN = {
    "one sequence of eight heads": ((1, 32, 1, 128, 32768, 8), True, "split"),
    "eight sequences": ((8, 32, 1, 128, 32768, 8), True, "split"),
    "eight short ones": ((8, 32, 1, 128, 2048, 8), True, "split"),
    "heads for four rounds": ((64, 32, 1, 128, 2048, 8), True, "one_block"),
    "heads for one round": ((16, 32, 1, 128, 4096, 8), True, "one_block"),
    "two rounds and a little": ((40, 32, 1, 128, 2048, 8), True, "stream_k"),
    "half as many heads as blocks, and some": ((1, 70, 1, 128, 2048, 70), True, "stream_k"),
    "a short cache": ((1, 8, 1, 64, 64, 8), True, "stream_k"),
    "several lengths": ((64, 32, 1, 128, 2048, 8), False, "stream_k"),
}


@pytest.mark.parametrize(("sizes", "alike", "name"), CHOSEN.values(), ids=CHOSEN)
@pytest.mark.parametrize("format", [BF16, FP16], ids=str)
def test_blocks_that_fill_the_gpu_are_chosen(sizes, alike, name, format):
    problem = attention.AttentionDecode(*sizes)
    assert choose_for_cache(described(problem, format), problem, format, CountingWorkspace(), alike).step.slug == name


def test_steps_say_how_busy_their_blocks_keep_the_gpu():
    one_block, split = map(attention.ladder("decode").step, ("one_block", "split"))
    of_sms = cuda.get_current_device().MULTIPROCESSOR_COUNT
    for batch in (1, 7, 16, 40):
        problem = attention.AttentionDecode(batch, 8, 1, 64, 2**15, 8)
        blocks = 8 * batch
        assert one_block.utilisation(problem) == blocks / (of_sms * -(-blocks // of_sms))
        parts = of_sms // blocks
        assert split.utilisation(problem) == (parts * blocks / of_sms if parts > 1 else 0)


@pytest.mark.parametrize("sizes", [sizes for sizes, *_ in CHOSEN.values()], ids=str)
def test_in_the_simulator_a_cache_is_read_by_the_step_that_is_quick_to_simulate(sizes, monkeypatch):
    if cuda.on_gpu():
        pytest.skip("there is a GPU")
    monkeypatch.undo()
    problem = attention.AttentionDecode(*sizes)
    step = choose_for_cache(described(problem, BF16), problem, BF16, CountingWorkspace(), same_lengths=False).step
    assert step.slug == "split" and step.QUICK_TO_SIMULATE
