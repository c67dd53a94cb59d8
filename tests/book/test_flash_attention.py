"""Numbers that the chapters on FlashAttention state in prose, held against the record of attention."""

import pytest

from labkit import attention, formats, gpu, modelled_timeline, places, results
from labkit.book.contents import source

pytestmark = pytest.mark.skipif(places.CHECKOUT is None, reason="reads a checkout")

H100 = "nvidia-h100-80gb-hbm3"


def read(slug):
    return source(places.PACKAGE.parent / "notebooks", slug).read_text(encoding="utf-8")


def gains(new, old, **where):
    """How many times faster one step is than another, on each problem in bfloat16 that has both."""
    rows = results.load("attention", H100).select(dtype="bfloat16", **where)
    times_ms = {(row["step"], row["problem"]): row["time_ms"] for row in rows}
    return [times_ms[old, name] / time_ms for (step, name), time_ms in times_ms.items() if step == new]


def span(ratios):
    return f"{min(ratios):.2f}x to {max(ratios):.2f}x"


def test_fused_over_stored_scores():
    rows = results.load("attention", H100).select(dtype="bfloat16", causal=False, step="mma")
    times_ms = {(row["problem"], row["baseline"]): row["baseline_time_ms"] for row in rows}
    over = {
        (name, row["head_dim"]): row["baseline_time_ms"] / times_ms[row["problem"], "flash"]
        for row in rows
        if (name := row["baseline"]).startswith("standard")
    }
    text = read("flash-attention")
    assert f"too bold for 256 ({over['standard (torch)', 256]:.1f}x)" in text
    assert f"fails for 256 ({over['standard (labkit)', 256]:.1f}x)" in text
    assert over["standard (torch)", 64] > 4 and 2 < over["standard (labkit)", 64] < 4
    at_4096 = [row for row in rows if row["problem"] == "4x16x4096x128" and row["baseline"] == "standard (torch)"]
    assert f"it is {at_4096[0]['baseline_time_ms'] / times_ms['4x16x4096x128', 'flash']:.1f}x against" in text


def test_ping_pong_on_top_of_overlap():
    without, causal = (max(gains("ping_pong", "overlap", causal=causal)) - 1 for causal in (False, True))
    said = f"gains {without:.0%} at best without a mask, and up to {causal:.0%} with a causal mask"
    assert said in read("flash-attention-2-and-3")


def test_measured_factors_that_the_model_is_held_against():
    where = {"causal": False, "head_dim": 128}
    measured = (span(gains(step, "wgmma", **where)) for step in ("overlap", "persistent"))
    assert f"they are {' and '.join(measured)}" in read("flash-attention-2-and-3")


def modelled_gains(keys):
    """How many times faster than wgmma overlap and persistent blocks are by the model, run as in the chapter."""
    steps = {step.slug: step for step in attention.ladder("forward")}
    problem = attention.AttentionForward(batch=1, heads=1, queries=256, head_dim=128, keys=keys)
    operands, cycles = problem.operands(formats.BF16), {}
    for slug, blocks in (("wgmma", 2), ("overlap", 2), ("persistent", 1)):
        found = steps[slug].simulate(*operands, format=formats.BF16, record=[(block, 0, 0) for block in range(blocks)])
        cycles[slug] = modelled_timeline(found.traces[0]).cycles
    return [cycles["wgmma"] / cycles[slug] for slug in ("overlap", "persistent")]


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("keys", "told"),
    [
        (512, "`overlap` is {:.2f}x faster than `wgmma`, and `persistent` {:.2f}x."),
        (2048, "with 2,048 keys in place of the picture's 512: {:.2f}x and {:.2f}x."),
    ],
)
def test_the_model_promises_more_with_more_keys(keys, told):
    assert told.format(*modelled_gains(keys)) in read("flash-attention-2-and-3")


def test_the_memories_of_an_h100():
    text, h100 = read("flash-attention"), gpu("H100 SXM")
    read_again = results.load("bandwidth", H100).select(level="L2", bytes=32 * 2**20)[0]["gb_s"] / 1000
    shared_tb_s = h100.sms * 128 * h100.clock_ghz / 1000  # 128 bytes per cycle and SM
    assert f"| registers | {h100.sms * 4 * h100.registers_per_sm / 2**20:.0f} MiB |" in text
    assert f"| shared memory | {h100.sms * h100.shared_bytes_per_sm / 2**20:.0f} MiB | {shared_tb_s:.1f} TB/s |" in text
    assert f"| L2 | {h100.l2_bytes / 2**20:.0f} MiB | {read_again:.1f} TB/s, measured |" in text
    assert f"| HBM | {h100.dram_gb} GB | {h100.dram_gb_s / 1000} TB/s |" in text
    assert f"reads 32 MiB again and again reached {read_again:.1f} TB/s" in text


def test_tensor_cores_need_less_than_the_measured_bandwidth_of_l2():
    problem = attention.AttentionForward(batch=1, heads=1, queries=16384, head_dim=128)
    moved = sum(attention.traffic.q_outer(problem, 128, 64, formats.BF16).values())
    needed = gpu("H100 SXM").peak_tflops["bfloat16 tensor"] * moved / problem.flops
    assert f"tensor cores at their peak need {needed:.1f} TB/s from L2" in read("flash-attention")
