"""Numbers that the chapter on decoding states in prose, held against records and studies."""

import pytest

from labkit import attention, formats, gpu, places, results
from labkit.book.contents import source

pytestmark = pytest.mark.skipif(places.CHECKOUT is None, reason="reads a checkout")

H100 = "nvidia-h100-80gb-hbm3"


@pytest.fixture(scope="module")
def text():
    return source(places.PACKAGE.parent / "notebooks", "decoding-and-few-bits").read_text(encoding="utf-8")


def times_ms(record, key, **where):
    return {row[key]: row["time_ms"] for row in results.load(record, H100).select(**where)}


def percent(ratio):
    return f"{ratio - 1:.0%}"


def test_a_split_is_five_times_as_fast_with_one_sequence():
    took = times_ms("attention_decode", "step", problem="1x32/8x1/32768x128", dtype="bfloat16")
    assert took["one_block"] / took["split"] == pytest.approx(5.2, abs=0.2)


def test_stream_k_is_ahead_only_with_long_sequences_of_one_length(text):
    lead = {}
    for problem in ("64x32/8x1/32768x128", "64x32/8x1/32768x128 ragged", "64x32/8x1/2048x128", "8x32/8x1/32768x128"):
        took = times_ms("attention_decode", "step", problem=problem, dtype="bfloat16")
        lead[problem] = took["split"] / took["stream_k"]
    assert [problem for problem, ahead in lead.items() if ahead > 1] == ["64x32/8x1/32768x128"]
    one = times_ms("attention_decode", "step", problem="1x32/8x1/32768x128", dtype="bfloat16")
    assert f"by {percent(one['stream_k'] / one['split'])} with one sequence" in text


def test_errors_of_e4m3_in_the_cache(text):
    errors = attention.cache_errors()["e4m3"]
    plain, rotated = errors["with outliers"], errors["with outliers, rotated"]
    assert f"its error is {plain:.1e}, and the rotation raises it to {rotated:.1e}".replace("e-0", "e-") in text


def test_pages_cost_a_percent(text):
    problems = "8x32/8x1/32768x128", "8x32/8x1/32768x128 BSHD page=64"
    plain, paged = (times_ms("attention_decode", "step", problem=p, dtype="bfloat16")["split"] for p in problems)
    assert f"`split` is {percent(paged / plain)} slower with pages of 64 keys" in text


def test_several_queries_and_one(text):
    took = times_ms("decode_shapes", "queries", kv_heads=8)
    assert f"Eight queries take {percent(took[8] / took[1])} more time than one" in text
    assert f"Sixteen queries take {percent(took[16] / took[1])} more time than one" in text


def test_eight_bits_compared_with_sixteen(text):
    sizes = {"head_dim": 128, "causal": False}
    ours, over_cudnn, summed, slowest = [], [], [], []
    for queries in (2048, 4096, 8192, 16384):
        rows = results.load("attention_fp8", H100).select(queries=queries, **sizes)
        of_cudnn = {
            row["step"]: row["baseline_time_ms"] / row["time_ms"] for row in rows if row["baseline"] == "cuDNN bf16"
        }
        over_cudnn.append(of_cudnn["linear_codes"])
        summed.append(of_cudnn["summed_weights"])
        slowest.append(of_cudnn["block_scaled"])
        sixteen = times_ms("attention", "step", queries=queries, dtype="bfloat16", **sizes)
        ours.append(min(sixteen.values()) / times_ms("attention_fp8", "step", queries=queries, **sizes)["linear_codes"])
    assert f"gains {percent(min(over_cudnn))} to {percent(max(over_cudnn))} on cuDNN in bfloat16" in text
    assert f"and {percent(min(ours))} to {percent(max(ours))} on our own best in bfloat16" in text
    assert f"`summed_weights` gains {percent(min(summed))} to {percent(max(summed))} on cuDNN" in text
    assert min(slowest) == pytest.approx(1.1, abs=0.03) and max(over_cudnn) == pytest.approx(1.35, abs=0.01)


def test_errors_of_the_rotation(text):
    _, _, scores, errors = attention.rotation_study()
    plain, blocks = errors.values()
    assert (
        f"by a factor of {plain[0] / blocks[-1]:.1f}, from {plain[0]:.1e} to {blocks[-1]:.1e}".replace("e-0", "e-")
        in text
    )
    largest = scores["each query's largest score"]
    assert 1 / 3 < 1 - largest[-1] / largest[0] < 0.5


def test_bytes_and_bandwidth(text):
    layer = attention.AttentionDecode(batch=1, heads=32, queries=1, head_dim=128, keys=32768, kv_heads=8)
    time_ms = 32 * layer.min_bytes(formats.BF16) / gpu("H100 SXM").dram_gb_s / 1e6
    assert f"that takes {time_ms:.1f} ms" in text
    assert f"or {2 * 128 * (576 + 512) / 1152:.0f} FLOP per byte" in text
