"""Which step reads a cache, and that what was recorded bears it out."""

import pytest

from labkit import attention, results
from labkit.attention.interface.choice import step_for_cache

CHOSEN = {
    "one sequence of eight heads": ((1, 32, 1, 128, 32768, 8), True, "split"),
    "eight sequences": ((8, 32, 1, 128, 32768, 8), True, "split"),
    "heads for four rounds": ((64, 32, 1, 128, 2048, 8), True, "one_block"),
    "two rounds and a little": ((40, 32, 1, 128, 2048, 8), True, "stream_k"),
    "half as many heads as blocks, and some": ((1, 70, 1, 128, 2048, 70), True, "stream_k"),
    "a short cache": ((1, 8, 1, 64, 64, 8), True, "stream_k"),
    "several lengths": ((64, 32, 1, 128, 2048, 8), False, "stream_k"),
}


@pytest.mark.parametrize(("sizes", "alike", "slug"), CHOSEN.values(), ids=CHOSEN)
def test_blocks_that_fill_the_gpu_are_chosen(sizes, alike, slug):
    assert step_for_cache(attention.AttentionDecode(*sizes), alike).slug == slug


def test_the_chosen_step_is_within_two_percent_of_the_fastest_that_was_recorded():
    times = {}
    for row in results.load("attention_decode", "nvidia-h100-80gb-hbm3").rows:
        if row["dtype"] == "bfloat16" and not row["ragged"] and row["page"] is None:
            sizes = tuple(row[name] for name in ("batch", "heads", "queries", "head_dim", "keys", "kv_heads"))
            times.setdefault(sizes, {})[row["step"]] = row["time_ms"]
    assert len(times) == 4
    for sizes, of in times.items():
        assert of[step_for_cache(attention.AttentionDecode(*sizes), True).slug] <= 1.02 * min(of.values())
