"""A cache of pages read in parts, held against the kernels' own partial results and against NumPy."""

import pytest

from labkit import attention, formats
from labkit.views import split_cache

CACHE = attention.AttentionDecode(batch=3, heads=4, queries=1, head_dim=64, keys=384, kv_heads=1, page=32)
BLOCKS = {
    "split": [(0, part, sequence) for sequence in range(3) for part in range(3)],
    "stream_k": [(block, 0, 0) for block in range(9)],
    "one_block": [(0, sequence, 0) for sequence in range(3)],
}
LENGTHS = 384, 200, 72
SCALE = 64**-0.5


@pytest.fixture(scope="module")
def operands():
    operands = CACHE.operands(formats.BF16)
    operands[3][:] = LENGTHS
    return operands


@pytest.fixture(scope="module")
def runs(operands):
    ladder = attention.ladder("decode")
    return {
        slug: ladder.step(slug).simulate(*operands, format=formats.BF16, record=blocks).traces[0]
        for slug, blocks in BLOCKS.items()
    }


@pytest.fixture(scope="module")
def arrays(operands):
    Q, K, _, lengths, table, *_ = operands
    return formats.BF16.decode(Q)[:, 0, 0], formats.BF16.decode(K)[:, 0], table, lengths


@pytest.fixture(scope="module")
def view(runs, arrays):
    return split_cache(runs, *arrays, tile=16, scale=SCALE)


def test_each_key_is_read_once_and_the_longest_chain_is_the_kernel_s(view):
    rounds = {choice["name"]: choice["rounds"] for choice in view.data["choices"]}
    assert rounds == {"split": 8, "stream_k": 5, "one_block": 24}  # of 24 + 13 + 5 tiles
    for choice in view.data["choices"]:
        read = [tuple(tile) for sequence in choice["tiles"] for tile in sequence]
        assert len(read) == len(set(read)) == 42
        assert choice["stats"]["values"][choice["rounds"] - 1][2] == "656 of 656"


def test_pages_are_those_of_the_table(view, arrays):
    _, _, table, _ = arrays
    assert view.data["pages"] == [row[: -(-length // 32)].tolist() for row, length in zip(table, LENGTHS)]
    owned = [page for page, (sequence, _) in enumerate(view.data["owners"]) if sequence >= 0]
    assert len(owned) == 12 + 7 + 3


def test_weights_of_parts_are_those_of_the_kernel_s_partial_results(view, runs):
    (results,) = (array for array in runs["split"].outputs if getattr(array, "shape", ()) == (9, 16, 72))
    ref_max, row_sum = results[:, 0, 64].astype(float), results[:, 0, 65]
    for sequence, parts in enumerate(view.data["choices"][0]["parts"]):
        assert [part["block"] for part in parts] == [3 * sequence + n for n in range(3)]
        of_sequence = slice(3 * sequence, 3 * sequence + 3)
        weights = row_sum[of_sequence] * 2.0 ** (ref_max[of_sequence] - ref_max[of_sequence].max())
        assert [part["share"] for part in parts] == pytest.approx(weights / weights.sum(), abs=2e-3)


def test_sentences_tell_who_reads_and_what_is_merged(view):
    split, stream_k, one_block = view.data["choices"]
    assert split["say"][0].startswith("**9 of 9 blocks** read at the same time, each a tile of 16 keys.")
    assert split["say"][7] == "Tile 8: **3 of 9 blocks** read. The others have read their parts, and wait."
    assert split["say"][8].startswith("**Merge** of sequence 0: its O is the weighted sum of the O of 3 parts.")
    assert "5 parts" in stream_k["say"][5] and "from **17% to 24%**" in stream_k["say"][5]
    assert one_block["say"][24] == "Sequence 0 was read by block 0 alone: there is nothing to merge."


def test_a_still_picture_and_what_is_refused(view, runs, arrays, operands, tmp_path):
    for step in (0, 7, 10):
        view.save_png(tmp_path / "split_cache.svg", step=step)
        assert (tmp_path / "split_cache.svg").stat().st_size > 5000
    queries, keys, table, lengths = arrays
    for change, message in (
        ({"tile": 24}, "not a multiple of a tile"),
        ({"tile": 4}, "1 to 48 tiles"),
        ({"tile": 16, "K": "key"}, "reads no array key"),
    ):
        with pytest.raises(ValueError, match=message):
            split_cache(runs, queries, keys, table, lengths, **change)
    with pytest.raises(ValueError, match="1 to 3 sequences"):
        split_cache(runs, queries[:2], keys, table, lengths, tile=16)
    with pytest.raises(ValueError, match="give it a run"):
        split_cache({}, queries, keys, table, lengths, tile=16)
    step = attention.ladder("decode").step("split")
    part = step.simulate(*operands, format=formats.BF16, record=BLOCKS["split"][:4]).traces[0]
    with pytest.raises(ValueError, match="record all blocks"):
        split_cache({"split": part}, queries, keys, table, lengths, tile=16)
