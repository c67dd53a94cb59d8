"""A verdict that a learner reads names the one change that makes a wrong answer right, if there is one."""

import ast
import re
import textwrap

import pytest
from exercise_cells import cell, defined
from sampling import sampled

from labkit.checking import repair
from labkit.checking.check import ALONE, judge
from labkit.checking.slips.ends import find_ends, is_sure_to_end
from labkit.checking.slips.repeated import list_repeated_changes
from labkit.exercises import exercise, exercise_ids

SLIPS = [
    ("write-saxpy", "cuda.grid(1)", "cuda.threadIdx.x", "this index leaves out the block"),
    ("the-game-of-life", "col, row = cuda.grid(2)", "row, col = cuda.grid(2)", "gives x, the column, first"),
    ("write-the-tiled-matmul", "A_tile[k, y]", "A_tile[y, k]", "the indices of `A_tile[y, k]` are in the wrong order"),
    ("a-split-in-pages", "lane, end, 32)", "lane, end)", "this `range` has no step, and goes on by 1"),
    ("the-logarithm-of-the-sum", "np.float32(-3e38)", "np.float32(0)", "above values that it should find"),
    ("the-nearest-point", "best = far", "best = np.float32(1e9)", "below values that it should find"),
    ("turn-it-over", "N)", "M)", "write `N`"),
    ("filter-sound", "        cuda.syncthreads()\n", "", "a barrier is missing"),
    ("a-bias-in-any-layout", "(pixels * V) % groups", "pixels * V % groups", "is computed first: put brackets"),
    ("a-bias-in-any-layout", " % groups * V", " * V", "`groups` is never used, and is missing here"),
    ("structs-to-arrays", "arrays[field, first + t]", "arrays[field, t]", "the index `t` lacks the term `first`"),
    ("structs-to-arrays", "arrays[field, first + t]", "arrays[first + t, field]", "are in the wrong order"),
    ("the-mask", "range(lane, keys, 32)", "range(lane, allowed, 32)", "should end at `keys`"),
    ("merge-the-parts", "s * exp(m - larger)", "s * exp(larger - m)", "is the wrong way round"),
    ("a-filter-per-channel", "sums[i - 1] +=", "sums[i - 1] =", "`=` forgets what was there before"),
    ("when-does-it-pay", "-(-cost // gain)", "cost // gain", "rounds down, and loses the remainder"),
]


@pytest.fixture(autouse=True)
def enough_time(monkeypatch):
    """Give a busy machine the time that a search takes."""
    monkeypatch.setattr(repair, "MOST_S", 60)


def judged(id, text, repairs=True):
    rules = exercise(id)
    kernel = defined(id, text, f"<{id}, repaired>")[rules.function]
    return judge(rules, kernel, seed=1, repairs=repairs)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("id", "right", "wrong", "said"), SLIPS, ids=[f"{slip[0]}, {slip[2].strip()}" for slip in SLIPS]
)
def test_a_slip_is_named_with_its_line_and_what_to_write(id, right, wrong, said):
    text = cell(id)
    assert right in text
    verdict = judged(id, text[::-1].replace(right[::-1], wrong[::-1], 1)[::-1])
    assert said in verdict.message and verdict.message.endswith(ALONE), verdict
    line = verdict.message.splitlines()[-1]
    assert re.search(rf"Line {verdict.line}(: |, for this or in its place: )", line)
    assert max(len(part.split()) for part in re.sub("`[^`]*`", "code", line).split(". ")) <= 35


def test_an_index_of_two_values_is_guarded_as_a_whole():
    text = cell("holes-and-groups").replace("S - 1 - s, c, k", "S - 1 - s if R != S else s, c, k")
    assert judged("holes-and-groups", text).reason == "result"


def test_lanes_that_leave_before_a_shuffle_are_told():
    zeros = "    red = green = blue = np.float32(0)\n"
    text = cell("pixels-by-shuffles").replace(zeros, f"    if pixel >= pixels:\n        return\n{zeros}")
    assert "lets threads leave, and all take part in line 15" in judged("pixels-by-shuffles", text).message


def test_nothing_is_searched_unless_a_learner_reads_the_verdict():
    text = cell("write-saxpy").replace("cuda.grid(1)", "cuda.threadIdx.x")
    assert ALONE not in judged("write-saxpy", text, repairs=False).message


@pytest.mark.sample(2)
@pytest.mark.parametrize("id", sampled(exercise_ids(), 12))
def test_the_code_that_an_exercise_gives_is_not_repaired(id):
    """Else its first check would tell the solution."""
    assert ALONE not in judged(id, cell(id, "blank")).message


REPEATED = [
    (
        "at-the-edge",
        "tile_y + i - pad, 2 * tile_x + j - pad",
        "tile_y + i + pad, 2 * tile_x + j + pad",
        "write `- pad`",
    ),
    ("at-the-edge", "tile_y + i - pad, 2 * tile_x + j - pad", "tile_y + i, 2 * tile_x + j", "`pad` is never used"),
    ("filter-sound", "(start + across) // L, (start + across) % L", "across // L, across % L", "`start` is left out"),
    (
        "filter-sound",
        "(start + down) // L, (start + down) % L",
        "(start + across) // L, (start + across) % L",
        "`down`",
    ),
    ("filter-sound", "t * hop + l", "t + l * hop", "the factor `hop` belongs to the other term"),
    ("filter-sound", "range(0, C * L, TILE)", "range(0, L, TILE)", "this `range` ends too early"),
    ("unflatten-an-index", "rsc // C % S", "rsc // C", "write `rsc // C % S`"),
    ("rms-norm", "    total = np.float32(0)\n    for warp", "    for warp", "what other lines added"),
    ("rms-norm", "weight[i]", "weight[row]", "write `i`"),
    ("big-integers", "np.float32(2 * points)", "np.float32(2)", "this is not divided by `points`"),
    ("big-integers", "carry += int", "carry = int", "`=` forgets what was there before"),
]


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("id", "right", "wrong", "said"), REPEATED, ids=[f"{id} {wrong}" for id, _, wrong, _ in REPEATED]
)
def test_a_slip_in_several_places_and_something_left_out_are_named(id, right, wrong, said):
    text = cell(id)
    assert text.count(right) == 1
    verdict = judged(id, text.replace(right, wrong))
    assert said in verdict.message and verdict.message.endswith(ALONE), verdict


SETS_ZERO = "    for i in range(3):\n        for j in range(3):\n            m[i, j] = 0\n"
IN_LOOP = "    for c in range(x.shape[0]):\n"
ARRIVES = "ptx.mbarrier_arrive(empty, stage)"
ONE_ARRIVES = f"cuda.syncwarp()\n                if lane == 0:\n                    {ARRIVES}"
OTHERS = [
    ("load-the-halo", [("i // COLS, i % COLS", "i // WIDE, i % WIDE")], "in this line: write `COLS`"),
    ("gather-a-row", [("tap // S - top", "tap % S - top"), ("tap % S - left", "tap // S - left")], "are exchanged"),
    (
        "two-by-two",
        [
            (SETS_ZERO, ""),
            (IN_LOOP, IN_LOOP + textwrap.indent(SETS_ZERO, "    ")),
        ],
        "lines 11 to 13 set `m` anew in each iteration of the loop of line 10: move them before that loop",
    ),
    ("the-missing-arrive", [("        ptx.cp_async_wait(0)\n", "")], "write it before line 29"),
    ("tiles-to-skip", [("<= first - window", "<= place - window")], "all of a block must decide alike: write `first`"),
    (
        "gather-backwards",
        [("below % stride == 0 and right % stride == 0 and ", "")],
        "add `below % stride == 0 and right % stride == 0`",
    ),
    ("the-mask", [("max(row + keys - queries + 1, 0)", "row + 1")], "write `row + 1 + keys - queries`"),
    ("rows-of-any-length", [(" % vectors\n", "\n", 1)], "goes on past `vectors`"),
    ("holes-and-groups", [("k // (K // groups)", "k // groups")], "write `k // (K // groups)`"),
    (
        "rms-norm",
        [("shared[columns + t // 32]", "shared[t // 32]"), ("shared[columns + warp]", "shared[warp]")],
        "store at `shared[columns + t // 32]`, behind it",
    ),
    ("the-ring-goes-on", [(ONE_ARRIVES, ARRIVES)], "and arrive only `if lane == 0:`"),
    ("running-sums", [("<= n", "< n")], "write `<= n` in lines 18 to 21"),
    ("overlap", [("t >= S - 1", "t >= S")], "write `t >= S - 1`"),
    (
        "move-the-banks",
        [("row ^ k * 4", "(row + k * 4) % BM"), ("t ^ k * 4", "(t - k * 4) % BM")],
        "goes the other way than `row + k * 4` in line 12",
    ),
    ("the-missing-rescale", [("exp(origin - highest)", "exp(most - highest)")], "write `origin`"),
    (
        "write-the-tiled-matmul",
        [("        cuda.syncthreads()\n    if", "    cuda.syncthreads()\n    if")],
        "the barrier of this line belongs into the loop",
    ),
]


@pytest.mark.sample(2)
@pytest.mark.parametrize(("id", "slips", "said"), OTHERS, ids=[f"{id}, {said[:20]}" for id, _, said in OTHERS])
def test_a_slip_in_what_lines_have_to_do_with_each_other_is_named(id, slips, said):
    text = cell(id)
    for right, wrong, *most in slips:
        assert right in text
        text = text.replace(right, wrong, *most)
    verdict = judged(id, text)
    assert said in verdict.message and verdict.message.endswith(ALONE), verdict


def test_all_whole_numbers_of_float32_sums_are_written_anew_together():
    lines = ["two, three = np.float32(2), np.float32(3)", "a = 2 * x[2 * t] - 3 * b", "b = 2 * a"]
    function = ast.parse("def f(x, t):\n" + "".join(f"    {line}\n" for line in lines)).body[0]
    assert isinstance(function, ast.FunctionDef)
    change = next(each for each in list_repeated_changes(function) if "make float64" in each.said)
    assert "a = two * x[2 * t] - three * b\n    b = two * a" in change.text
    assert change.said.endswith("write `three` for `3` and `two` for `2` in lines 3 and 4.")


CHANGES = [  # lines of a function, what is written in place of one, and a part of what is said
    ("top, left = 2 * (y - pad), 2 * (x - pad)", "top, left = (2 * y - pad, 2 * x - pad)", "takes in `pad`, too"),
    ("h = (p + tap - top) * stride", "h = p * stride + tap - top", "which belongs outside"),
    ("r = sqrt(s / n) + eps", "r = sqrt(s / n + eps)", "`eps` belongs into the brackets"),
    ("r = sqrt(s + eps) / n", "r = sqrt(s / n + eps)", "`n` belongs into the brackets"),
    ("r = exp(a - b)", "r = exp(a) - b", "`b` belongs behind the brackets"),
    ("r = a // b + 1", "r = -(-a // b)", "one too many where nothing is left over"),
    ("r = (a + b) // b", "r = -(-a // b)", "one too many where nothing is left over"),
    ("r = x / np.float32(n)", "r = x / np.float32(2 * n)", "divides by half of what is needed"),
    ("a = X[y + i * rows]\nrow = top + y * count + i", "row = top + y + i * rows", "line 2 takes `y + i * rows`"),
    ("if i < M:\n    t = A[k, left + x]", "if left + x < M:", "this tests `i`, but"),
    (
        "H, W = A.shape\nif top + y < H and left + x < W:\n    t = A[top + r, left + c]",
        "if top + r < H and left + c < W:",
        "which are not",
    ),
    ("if i < N and j < M:\n    t = 1", "if i < M and j < N:", "are exchanged in this condition"),
    (
        "if i < n:\n    a[i] = x[i]\nelse:\n    a[i] = 0\nb[i] = 2 * a[i]",
        "b[i] = 2 * a[i] if i < n else 0",
        "this must be 0 where `i < n` does not hold, as in line 2",
    ),
    ("a |= np.uint32(0x3C000000)\nb |= np.uint32(0x3C00)", "a |= np.uint32(15360)", "`0x3c000000` and `0x3c00`"),
    (
        "for c in range(C):\n    for i in range(3):\n        t = c\n        m[i] = 0\n        m[i] += x[i, t]",
        "for i in range(3):\n        m[i] = 0\n    for c in range(C):",
        "begin once, before line 2, by a loop of its own",
    ),
    ("ptx.mbarrier_wait(empty, stage, parity)", "ptx.mbarrier_wait(empty, stage, 1 - parity)", "who acts first"),
    ("total += n\nd = x / total * n", "x / (total - n) * n", "`total` already includes `n`, which line 2 has added"),
    ("d = x / total\ntotal += n", "x / (total + n)", "`total` lacks `n`, which line 3 adds only later"),
    (
        "re[k] = re[k] - im[k]\nim[k] = 2 * re[k]",
        "before = re[k]\n    re[k] = re[k] - im[k]\n    im[k] = 2 * before",
        "line 2 has already replaced `re[k]`",
    ),
    ("key = part * 64 + j\npage = table[j // 16] + j % 16", "table[key // 16] + key % 16", "what line 2 makes of it"),
    ("key = part * 64 + j\na[key] = x[key] + 1", "a[j] = x[j] + 1", "write `j`"),
    (
        "col, row = cuda.grid(2)\nx = cuda.threadIdx.x\nt[0] = A[0, col] if col < M else 0",
        "A[0, cuda.blockIdx.y * cuda.blockDim.y + x] if cuda.blockIdx.y * cuda.blockDim.y + x < M",
        "this line needs one of its rows",
    ),
    ("t[k, r ^ k] = A[r]\nb = t[k, c ^ k]", "t[k, r ^ k * 4] = A[r]\n    b = t[k, c ^ k * 4]", "share a bank"),
    (
        "while m:\n    if n:\n        copy(n)\n        ptx.cp_async_wait(1)\n    cuda.syncthreads()\n    use(n)",
        "        ptx.cp_async_wait(0)\n        cuda.syncthreads()\n        if n:\n            copy(n)\n        use(n)",
        "overwrite what slow threads still read",
    ),
    (
        "for j in x:\n    if new > m:\n        s = s * exp(m - new)\n    s += exp(j - m)",
        "s = s * exp(m - new)\n            m = new\n",
        "and `m` stays as it was: write `m = new` after line 4",
    ),
    (
        "lane = cuda.threadIdx.x\nout[r, 0] = a\nout[r, 1] = b",
        "if lane == 0:\n        out[r, 0] = a\n        out[r, 1] = b",
        "lines 3 to 4 store in all threads",
    ),
    (
        "m = cuda.shfl_xor_sync(1, m, 1)\nfor i in range(cuda.threadIdx.x, n, 32):\n    s += x[i]\ny[0] = s",
        "        s += cuda.shfl_xor_sync(4294967295, s, away)\n    y[0] = s",
        "`s` is that of one lane alone",
    ),
    ("i, j = 1, 2\nif 0 <= j and j < 9:\n    i = j", "if i < x and 0 <= j and (j < 9):", "`x` is never used"),
    ("if r < H and c < W:\n    t = 1", "if 0 <= r < H and 0 <= c < W:", "write `0 <= r < H` and `0 <= c < W`"),
    ("if r < H and c < W:\n    t = 1", "if r < H and 0 <= c < W:", "write `0 <= c < W`"),
    ("t[a, b ^ 4 * a] = 1\ny = t[c, p]", "y = t[c, p ^ 4 * c]", "another place for the same element"),
    (
        "for p in range(9):\n    m, n = x[p], c[p]\n    t += m / n",
        "        if n > np.float32(0):\n            t += m / n",
        "where `n` is 0, nothing is to be counted",
    ),
    (
        "product[0] = c // n\nc %= n",
        "product[0] = c % n\n    c //= n",
        "`//` here and `%` in line 3 are exchanged",
    ),
    ("y[2 * t] = x[t + 1]", "y[2 * t] = x[2 * t + 1]", "line 2 counts by `2 * t`, and here `t` has no factor"),
    ("top, left = r, c", "top, left = (2 * r, 2 * c)", "`top` and `left` begin `2` apart"),
    ("if r + 8 < n:\n    a = x[r]", "a = x[r + 8]", "line 2 tests `r + 8`, but `x[r]` has the index `r`"),
    (
        "ptx.mbarrier_wait(full, stage, (turn + 1) % 2)",
        "ptx.mbarrier_wait(full, stage, turn % 2)",
        "before anything has come",
    ),
    (
        "t = cuda.shared.array(8, np.float32)\nt[0] = 1\nfor i in range(8):\n    s = exp(x[i])",
        "s = exp(x[i] - t[i])",
        "`t` is filled, and no line reads it",
    ),
    ("source = ((n * H + h) * W + w) + v", "((n * H + h) * W + w) * V + v", "counts what is `V` long"),
    ("t[a, b ^ r] = 1\ny = t[a, b ^ c]", "t[a, b ^ r * 4] = 1\n    y = t[a, b ^ c * 4]", "share a bank"),
    (
        "t[y, x] = B[s + x, c] if s + x < K else 0\ny, x = 1, 2",
        "t[y, x] = B[s + y, c] if s + y < K else 0",
        "write `y`",
    ),
    ("r[F * i + k] = x[0]\ny[f] = r[f * N + t]", "r[F * t + f]", "the elements lie the other way"),
    ("M, K = A.shape[0], B.shape[0]\nif j <= i:\n    t = M + K", "if j <= i + K - M:", "may differ"),
]


@pytest.mark.parametrize(("lines", "written", "said"), CHANGES, ids=[said for *_, said in CHANGES])
def test_a_slip_is_turned_round(lines, written, said):
    function = ast.parse("def f(x):\n" + textwrap.indent(lines, "    ")).body[0]
    assert isinstance(function, ast.FunctionDef)
    before = ast.unparse(function)
    found = [each for each in list_repeated_changes(function, ["V"]) if said in each.said]
    assert any(written in each.text for each in found), [each.text for each in found]
    assert ast.unparse(function) == before


FROM_OTHER_LINES = [
    (
        "load-the-halo",
        "top + row < H and left + col < W",
        "top + ty < H and left + tx < W",
        "this tests `top + ty` and",
    ),
    ("when-does-it-pay", "-(-cost // gain)", "cost // gain + 1", "one too many where nothing is left over"),
    ("choose-a-sort", "length < numbers", "length <= numbers", "write `length < numbers`"),
]


@pytest.mark.sample(2)
@pytest.mark.parametrize(("id", "right", "wrong", "said"), FROM_OTHER_LINES, ids=[id for id, *_ in FROM_OTHER_LINES])
def test_a_slip_that_other_lines_hint_at_is_named(id, right, wrong, said):
    assert right in cell(id)
    verdict = judged(id, cell(id).replace(right, wrong))
    assert said in verdict.message and verdict.message.endswith(ALONE), verdict


def test_two_constants_that_are_exchanged_where_another_is_set_are_named():
    text = cell("load-the-halo").replace("HIGH + R - 1, WIDE + S - 1", "HIGH + S - 1, WIDE + R - 1")
    verdict = judged("load-the-halo", text)
    assert "Line 2: `R` and `S` are exchanged in this line" in verdict.message and verdict.message.endswith(ALONE)


def test_a_line_is_written_after_the_branch_that_sets_what_it_reads():
    lines = "        part_max = score\n"
    branch = "        if key > i + keys - queries:\n            score = np.float32(-np.inf)\n"
    text = cell("verify-a-draft").replace(branch + lines, lines + branch)
    assert "this line reads `score` before line" in judged("verify-a-draft", text).message


def test_a_function_that_is_imported_and_never_called_is_named():
    text = cell("cross-entropy-without-logits").replace("log(total)", "total")
    assert (
        "`log` is imported and never called: write `log(total)`" in judged("cross-entropy-without-logits", text).message
    )


def test_what_one_lane_has_is_told_from_what_all_have():
    text = cell("a-length-without-overflow").replace("largest * sqrt", "scale * sqrt")
    assert "and here it must be `largest`" in judged("a-length-without-overflow", text).message


def test_a_maximum_that_forgets_the_one_so_far_is_named():
    text = cell("one-tile-for-both").replace("new_max = row_max\n", "new_max = np.float32(-np.inf)\n")
    assert "forgets the one so far: begin at `row_max`" in judged("one-tile-for-both", text).message


def test_a_comparison_the_wrong_way_round_is_named():
    text = cell("what-fits").replace("< (best", "> (best")
    assert "is the wrong way round: write" in judged("what-fits", text).message


def test_a_loop_that_goes_past_a_tile_is_named():
    text = cell("write-the-tiled-matmul").replace("for k in range(TILE)", "for k in range(K)")
    assert "should end at `TILE`" in judged("write-the-tiled-matmul", text).message
    told = judged("write-the-tiled-matmul", text, repairs=False).message
    assert "goes too far, `range(K)`: end it at `A_tile.shape[0]`" in told


ENDS = [  # a condition that ended, another one, and whether that ends as well
    ("n <= m", "n < m", True),
    ("n < m", "n <= m", False),
    ("n < m", "n < m - 1", True),
    ("n < m + 1", "n < m", True),
    ("k < m", "k <= m", True),
    ("k < m", "k < 2 * m", True),
    ("n < m", "n != m", False),
]


@pytest.mark.parametrize(("before", "after", "ends"), ENDS)
def test_a_loop_is_changed_only_if_it_is_sure_to_end(before, after, ends):
    text = "def f(n, k, m):\n    while {}:\n        n = n // 2\n        k += 1"
    old, new = (find_ends(ast.parse(text.format(test))) for test in (before, after))
    assert is_sure_to_end(old, new) is ends


def test_a_step_that_grows_may_grow_faster():
    text = "def f(n, m):\n    while n < m:\n        n *= {}"
    old, new, stopped = (find_ends(ast.parse(text.format(step))) for step in (2, 4, 1))
    assert is_sure_to_end(old, new) and not is_sure_to_end(old, stopped)


@pytest.mark.sample(2)
@pytest.mark.parametrize("id", sampled(exercise_ids(), 6))
def test_changes_of_any_code_are_made_and_taken_back(id):
    for function in [node for node in ast.parse(cell(id)).body if isinstance(node, ast.FunctionDef)]:
        before = ast.unparse(function)
        for change in list_repeated_changes(function, ["TILE"]):
            ast.parse(change.text)
        assert ast.unparse(function) == before
