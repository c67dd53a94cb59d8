"""Products by the tensor cores of a warpgroup, against float64, and what spoils them."""

import numpy as np
import pytest
from cells import kernel_in, line_of
from numba import types, uint8, uint16, uint32, uint64

import labkit
from labkit import ptx
from labkit.simulator.errors import KernelError

# a use of each instruction, and the least compute capability that has it (tests/ptx/test_capabilities.py)
LINES = {
    "ptx.wgmma(acc, 0, 16, tile, (0, 0), tile, (0, 0), ptx.BF16)": (9, 0, "a"),
    "ptx.wgmma_registers(acc, 0, 16, (q, q, q, q), tile, (0, 0), ptx.FP16)": (9, 0, "a"),
    "ptx.wgmma_major(acc, 0, 16, tile, (0, 0), ptx.MN_MAJOR, tile, (0, 0), ptx.K_MAJOR, ptx.BF16)": (9, 0, "a"),
    "ptx.wgmma_registers_major(acc, 0, 16, (q, q, q, q), tile, (0, 0), ptx.MN_MAJOR, ptx.FP16)": (9, 0, "a"),
    "ptx.wgmma_scaled(acc, 0, 16, tile, (0, 0), ptx.K_MAJOR, tile, (0, 0), ptx.K_MAJOR, ptx.BF16, q > 1, ptx.MINUS)": (
        9,
        0,
        "a",
    ),
    "ptx.wgmma_registers_scaled(acc, 0, 16, (q, q, q, q), tile, (0, 0), ptx.MN_MAJOR, ptx.FP16, False, 1)": (9, 0, "a"),
    "ptx.wgmma_registers_scaled(acc, 0, 16, (q, q, q, q), tile, (0, 0), ptx.K_MAJOR, ptx.TF32, True, 1)": (9, 0, "a"),
    "ptx.wgmma_fence()": (9, 0, "a"),
    "ptx.wgmma_commit()": (9, 0, "a"),
    "ptx.wgmma_wait(1)": (9, 0, "a"),
    "ptx.setmaxnreg_inc(232)": (9, 0, "a"),
    "ptx.setmaxnreg_dec(40)": (9, 0, "a"),
}

ROWS, GROUPS = 128, 2

PRODUCT = """
@cuda.jit
def product(A, B, out):
    a = cuda.shared.array((ROWS, WIDE), KIND, alignment=1024)
    b = cuda.shared.array((N, WIDE), KIND, alignment=1024)
    acc = cuda.local.array(SUMS, float32)
    t = cuda.threadIdx.x
    for i in range(t, ROWS * WIDE, 256):
        r, c = i // WIDE, i % WIDE
        a[r, (c // PIECE ^ r % 8) * PIECE + c % PIECE] = A[cuda.blockIdx.x, r, c]
    for i in range(t, N * WIDE, 256):
        r, c = i // WIDE, i % WIDE
        b[r, (c // PIECE ^ r % 8) * PIECE + c % PIECE] = B[r, c]
    ptx.fence_async()
    cuda.syncthreads()
    for i in range(N // 2):
        acc[i] = i
    ptx.wgmma_fence()
    for k in range(4):
        ptx.wgmma(acc, 0, N, a, (t // 128 * 64, 2 * PIECE * k), b, (0, 2 * PIECE * k), FORMAT)
    ptx.wgmma_commit()
    ptx.wgmma_wait(0)
    row = t // 32 * 16 + t % 32 // 4
    for j in range(N // 8):
        for h in range(2):
            for c in range(2):
                out[cuda.blockIdx.x, row + 8 * h, 8 * j + t % 4 * 2 + c] = acc[4 * j + 2 * h + c]
"""


def bits_of(values, form):
    """float32 that a format holds exactly, as its bits."""
    if form == ptx.BF16:
        return (values.view(np.uint32) >> 16).astype(np.uint16)
    if form == ptx.FP16:
        return values.astype(np.float16).view(np.uint16)
    if form == ptx.TF32:
        return values
    sign, size = np.signbit(values).astype(np.uint8) << 7, np.abs(values)
    exponent = np.floor(np.log2(np.where(size > 0, size, 1))).astype(int)
    fraction = np.round((size / 2.0**exponent - 1) * 8).astype(int)
    return np.where(size > 0, sign | (exponent + 7) << 3 | fraction, 0).astype(np.uint8)


def exact(shape, seed):
    """Numbers that every format holds: a few bits each."""
    return np.random.default_rng(seed).integers(-15, 16, shape).astype(np.float32) / 4


KINDS = {ptx.BF16: (uint16, 64), ptx.FP16: (uint16, 64), ptx.TF32: (types.float32, 32), ptx.E4M3: (uint8, 128)}


def kernel(text, form=ptx.BF16, n=64, **more):
    kind, wide = KINDS[form]
    names = dict(KIND=kind, WIDE=wide, PIECE=wide // 8, N=n, SUMS=n // 2, ROWS=ROWS, FORMAT=form)
    return kernel_in(text, ptx=ptx, uint16=uint16, uint32=uint32, uint64=uint64, **names, **more)


def run(text, form=ptx.BF16, n=64, blocks=2):
    made, wide = kernel(text, form, n), KINDS[form][1]
    A, B = exact((blocks, ROWS, wide), 1), exact((n, wide), 2)
    trace = labkit.simulate(
        made, blocks, 256, bits_of(A, form), bits_of(B, form), np.zeros((blocks, ROWS, n), np.float32)
    )
    return made, trace, A.astype(np.float64) @ B.T.astype(np.float64)


def start(n, blocks=2):
    """What the accumulators begin with: their number in their thread."""
    column, row = np.arange(n), np.arange(ROWS)[:, None]
    return np.broadcast_to(column // 8 * 4 + row % 16 // 8 * 2 + column % 2, (blocks, ROWS, n))


@pytest.mark.parametrize("n", [8, 64, 136, 184])
@pytest.mark.parametrize("form", KINDS)
def test_a_product_of_tiles(form, n):
    _, trace, expected = run(PRODUCT, form, n)
    assert not trace.errors, trace.errors
    assert np.array_equal(trace.outputs[2], expected + start(n))


def test_a_product_is_counted():
    _, trace, _ = run(PRODUCT, ptx.BF16, 64)
    assert trace.counters.flops_by_dtype["bfloat16 tensor"] == 2 * (2 * ROWS * 64 * 64)
    read = {c.site.array: c for c in trace.sites if c.site.space == "shared" and c.site.kind == "load"}
    assert read["a"].bytes == 2 * ROWS * 128
    assert read["b"].bytes == 2 * GROUPS * 64 * 128
    assert all(c.wavefronts == c.bytes // 128 for c in read.values())


def test_tf32_reads_the_upper_19_bits_alone():
    made = kernel(PRODUCT, ptx.TF32, 8)
    A, B = np.ones((1, ROWS, 32), np.float32), np.ones((8, 32), np.float32)
    A[0, 0, 0] = 1 + 2.0**-10 + 2.0**-11
    trace = labkit.simulate(made, 1, 256, A, B, np.zeros((1, ROWS, 8), np.float32))
    assert trace.outputs[2][0, 0, 0] == 32 + np.float32(2.0**-10)


@pytest.mark.parametrize("waits", [True, False])
def test_behind_its_wait_each_warp_knows_that_the_products_of_all_four_are_done(waits):
    """The last warp of the second group tells the first group's that B's tile has been read."""
    done = "    ptx.wgmma_wait(0)\n"
    handed = (
        "    if t // 32 == 3 or t // 32 == 7:\n"
        "        ptx.barrier_sync(1, 64)\n"
        "    if t // 32 == 3:\n"
        "        b[0, t % 32] = 0\n"
    )
    text = PRODUCT.replace(done, done + handed if waits else handed + done)
    _, trace, _ = run(text)
    assert bool(trace.errors) != waits, trace.errors


NOTED = PRODUCT.replace("    t = cuda", "    seen = cuda.shared.array(256, float32)\n    t = cuda", 1)


def noting(before, behind):
    """A product with these lines before and behind its wait."""
    done = "    ptx.wgmma_wait(0)\n"
    assert NOTED.count(done) == 1
    return run(NOTED.replace(done, f"    {before}\n{done}    {behind}\n"))


def test_a_wait_is_no_barrier_for_what_the_warps_do_themselves():
    made, trace, _ = noting("seen[t] = t", "x = seen[t ^ 32]")
    (finding,) = trace.errors
    assert (finding.kind, finding.array) == ("race", "seen")
    assert {finding.line, finding.other_line} == {line_of(made, "seen[t] = t"), line_of(made, "seen[t ^ 32]")}
    barrier = "\n    ptx.barrier_sync(t // 128 + 1, 128)"
    assert not noting("seen[t] = t" + barrier, "x = seen[t ^ 32]")[1].errors


def test_one_warp_that_has_waited_does_not_speak_for_what_another_reads():
    """Each warp reads a number beside the product, and the first warp of a group alone says that the tile is free."""
    told = "if t // 32 == 0 or t // 32 == 7:\n        ptx.barrier_sync(1, 64)"
    over = "\n    if t // 32 == 7:\n        seen[t % 32 + {}] = 0"
    for first, is_race in ((0, False), (32, True)):
        _, trace, _ = noting("seen[t] = t\n    x = seen[t]", told + over.format(first))
        assert [f.kind for f in trace.errors] == ["race"] * is_race, (first, trace.errors)


def test_a_warp_need_not_wait_for_the_waits_of_the_others():
    """Three warps of a group wait at a barrier, at which the first comes behind its wait for the product."""
    before = "if t // 32 % 4:\n        ptx.barrier_sync(t // 128 + 1, 128)"
    behind = "if t // 32 % 4 == 0:\n        ptx.barrier_sync(t // 128 + 1, 128)"
    _, trace, expected = noting(before, behind)
    assert not trace.errors, trace.errors
    assert np.array_equal(trace.outputs[2], expected + start(64))


def test_a_group_of_products_is_waited_for_by_each_warpgroup_on_its_own():
    """The first warpgroup has a newer group in flight, and so has waited for the one of both; the second has not."""
    more = """    ptx.wgmma_commit()
    if t < 128:
        ptx.wgmma(acc, 0, N, a, (0, 0), b, (0, 0), FORMAT)
        ptx.wgmma_commit()
    ptx.wgmma_wait(1)
    cuda.syncthreads()
    if t // 32 == {}:
        {}[{}, t % 32] = 0
"""
    for where in ((7, "a", 64), (7, "b", 0)):
        _, trace, _ = run(mutant("    ptx.wgmma_commit()\n", more.format(*where)))
        assert "race" in {f.kind for f in trace.errors}, where
    _, trace, _ = run(mutant("    ptx.wgmma_commit()\n", more.replace("wait(1)", "wait(0)").format(7, "b", 0)))
    assert not trace.errors, trace.errors


def test_a_product_that_one_warp_never_asks_for_is_waited_for_forever():
    text = mutant("        ptx.wgmma(acc", "        if t // 32 != 3:\n            ptx.wgmma(acc")
    apart = "    if t // 32 == 3:\n        ptx.barrier_sync(1, 32)\n"
    made, trace, _ = run(text.replace("    ptx.wgmma_fence()\n", apart + "    ptx.wgmma_fence()\n"))
    assert [f.kind for f in trace.errors] == ["deadlock"], trace.errors
    assert trace.errors[0].line == line_of(made, "wgmma_wait")
    assert "waits at line" in trace.errors[0].message and "the other warps of its warpgroup" in trace.errors[0].message


REGISTERS = PRODUCT.replace(
    "        ptx.wgmma(acc, 0, N, a, (t // 128 * 64, 2 * PIECE * k), b, (0, 2 * PIECE * k), FORMAT)\n",
    """
        r = t // 32 * 16 + t % 32 // 4
        c = 2 * PIECE * k + t % 4 * 2
        block = cuda.blockIdx.x
        f0 = uint32(A[block, r, c]) | uint32(A[block, r, c + 1]) << uint32(16)
        f1 = uint32(A[block, r + 8, c]) | uint32(A[block, r + 8, c + 1]) << uint32(16)
        f2 = uint32(A[block, r, c + 8]) | uint32(A[block, r, c + 9]) << uint32(16)
        f3 = uint32(A[block, r + 8, c + 8]) | uint32(A[block, r + 8, c + 9]) << uint32(16)
        ptx.wgmma_fence()
        ptx.wgmma_registers(acc, 0, N, (f0, f1, f2, f3), b, (0, 2 * PIECE * k), FORMAT)
""",
)


def test_a_product_of_registers_and_a_tile():
    _, trace, expected = run(REGISTERS)
    assert not trace.errors, trace.errors
    assert np.array_equal(trace.outputs[2], expected + start(64))


FENCED = """\
        ptx.wgmma_fence()
        ptx.wgmma_registers(acc, 0, N, (f0, f1, f2, f3), b, (0, 2 * PIECE * k), FORMAT)
"""
ALONE = FENCED.replace("        ptx.wgmma_fence()\n", "")


@pytest.mark.parametrize(
    "after, written",
    [
        (ALONE, "f3 = uint32"),
        (FENCED.replace("()\n", "()\n        f0 |= uint32(0)\n"), "f0 |="),
        (FENCED.replace("()\n", "()\n        if k > 1:\n            f1, x = f1, f0\n"), "f1, x"),
        (ALONE.replace("    ptx", "    if k >= 0:\n            ptx"), "f3 = uint32"),
        (FENCED.replace("()\n", "()\n        x = f0\n"), None),
        (FENCED.replace("        ptx.wgmma_r", "        if k >= 0:\n            ptx.wgmma_r"), None),
        ("        if k >= 0:\n            ptx.wgmma_fence()\n" + ALONE, None),
        (FENCED + ALONE, None),  # the second reads what the first did
    ],
)
def test_registers_are_fenced_after_they_are_written(after, written):
    assert REGISTERS.count(FENCED) == 1
    made, trace, _ = run(REGISTERS.replace(FENCED, after))
    expected = [("warpgroup", line_of(made, "wgmma_registers"), line_of(made, written))] if written else []
    assert [(f.kind, f.line, f.other_line) for f in trace.errors] == expected
    assert all("Call `ptx.wgmma_fence()`" in f.remedy for f in trace.errors)


MAJORS = """
@cuda.jit
def product(A, B, out):
    a = cuda.shared.array((2, 64, 64), uint16, alignment=1024)
    b = cuda.shared.array(B_SHAPE, uint16, alignment=1024)
    acc = cuda.local.array(SUMS, float32)
    t = cuda.threadIdx.x
    for i in range(t, ROWS * 64, 256):
        r, k = i // 64, i % 64
        if A_MAJOR == 0:
            a[r // 64, r % 64, (k // 8 ^ r % 8) * 8 + k % 8] = A[cuda.blockIdx.x, r, k]
        else:
            a[r // 64, k, (r % 64 // 8 ^ k % 8) * 8 + r % 8] = A[cuda.blockIdx.x, r, k]
    for i in range(t, N * 64, 256):
        r, k = i // 64, i % 64
        if B_MAJOR == 0:
            b[0, r, (k // 8 ^ r % 8) * 8 + k % 8] = B[r, k]
        else:
            b[r // 64, k, (r % 64 // 8 ^ k % 8) * 8 + r % 8] = B[r, k]
    ptx.fence_async()
    cuda.syncthreads()
    for i in range(N // 2):
        acc[i] = i
    ptx.wgmma_fence()
    for k in range(0, 64, 16):
        i, j = (0, k) if A_MAJOR == 0 else (k, 0)
        r, c = (0, k) if B_MAJOR == 0 else (k, 0)
        ptx.wgmma_major(acc, 0, N, a, (t // 128, i, j), A_MAJOR, b, (0, r, c), B_MAJOR, FORMAT)
    ptx.wgmma_commit()
    ptx.wgmma_wait(0)
"""
MAJORS += PRODUCT[PRODUCT.index("    row = ") :]


def kernel_of_majors(text, a_major, b_major, n, form=ptx.BF16, **more):
    b_shape = (-(-n // 64), 64, 64) if b_major else (1, n, 64)
    names = dict(N=n, SUMS=n // 2, ROWS=ROWS, FORMAT=form, A_MAJOR=a_major, B_MAJOR=b_major, B_SHAPE=b_shape)
    return kernel_in(text, ptx=ptx, uint16=uint16, **names, **more)


def run_majors(text, a_major, b_major, n, form=ptx.BF16):
    made = kernel_of_majors(text, a_major, b_major, n, form)
    A, B = exact((2, ROWS, 64), 1), exact((n, 64), 2)
    out = np.zeros((2, ROWS, n), np.float32)
    trace = labkit.simulate(made, 2, 256, bits_of(A, form), bits_of(B, form), out)
    return made, trace, A.astype(np.float64) @ B.T.astype(np.float64)


@pytest.mark.parametrize("n", [8, 64, 184])
@pytest.mark.parametrize("a_major", [ptx.K_MAJOR, ptx.MN_MAJOR])
@pytest.mark.parametrize("b_major", [ptx.K_MAJOR, ptx.MN_MAJOR])
def test_a_product_of_tiles_that_lie_either_way(a_major, b_major, n):
    _, trace, expected = run_majors(MAJORS, a_major, b_major, n)
    assert not trace.errors, trace.errors
    assert np.array_equal(trace.outputs[2], expected + start(n))
    read = {c.site.array: c.bytes for c in trace.sites if c.site.space == "shared" and c.site.kind == "load"}
    assert read == {"a": 2 * ROWS * 128, "b": 2 * GROUPS * n * 128}


SCALED = MAJORS.replace("wgmma_major(", "wgmma_scaled(").replace("B_MAJOR, FORMAT)", "B_MAJOR, FORMAT, KEEPS, SIGN)")
BLANK = SCALED.replace("    for i in range(N // 2):\n        acc[i] = i\n", "")


def run_scaled(text, keeps, sign="1"):
    return run_majors(text.replace("KEEPS", keeps).replace("SIGN", sign), ptx.K_MAJOR, ptx.MN_MAJOR, 72)


@pytest.mark.parametrize("keeps", ["k > 0", "k", "k != 0 or False"])
def test_a_first_product_takes_the_place_of_what_the_accumulators_hold(keeps):
    """They need hold nothing before."""
    for text in (SCALED, BLANK):
        _, trace, expected = run_scaled(text, keeps)
        assert not trace.errors, trace.errors
        assert np.array_equal(trace.outputs[2], expected)


def test_accumulators_that_are_kept_hold_something():
    _, trace, expected = run_scaled(SCALED, "True")
    assert not trace.errors and np.array_equal(trace.outputs[2], expected + start(72))
    made, trace, _ = run_scaled(BLANK, "k >= 0")
    assert ("uninitialised", line_of(made, "wgmma_scaled")) in {(f.kind, f.line) for f in trace.errors}


def test_a_product_may_be_taken_away():
    text = SCALED.replace("SIGN", "MINUS").replace("KEEPS", "k >= 0")
    made = kernel_of_majors(text, ptx.K_MAJOR, ptx.MN_MAJOR, 72, MINUS=-1)
    A, B = exact((2, ROWS, 64), 1), exact((72, 64), 2)
    given = bits_of(A, ptx.BF16), bits_of(B, ptx.BF16), np.zeros((2, ROWS, 72), np.float32)
    trace = labkit.simulate(made, 2, 256, *given)
    assert not trace.errors
    assert np.array_equal(trace.outputs[2], start(72) - A.astype(np.float64) @ B.T.astype(np.float64))


def test_warpgroups_choose_apart():
    """The second keeps what its accumulators held."""
    _, trace, expected = run_scaled(SCALED, "k > 0 or t >= 128")
    assert not trace.errors, trace.errors
    kept = np.arange(ROWS)[:, None] >= 64
    assert np.array_equal(trace.outputs[2], expected + np.where(kept, start(72), 0))


@pytest.mark.parametrize(
    "keeps, sign, message",
    [
        ("t % 2", "1", "all threads of a warpgroup say the same of whether `ptx.wgmma_scaled` keeps"),
        ("t < 64", "1", "all threads of a warpgroup say the same"),
        ("True", "2", "the sign of a product is 1 or -1, not 2"),
        ("True", "k", "the sign of a product"),
    ],
)
def test_a_scale_that_is_none_is_refused_in_a_sentence(keeps, sign, message):
    with pytest.raises(KernelError, match=message):
        run_scaled(SCALED, keeps, sign)


def test_a_product_of_registers_takes_the_place_of_what_there_was():
    text = REGISTERS.replace("wgmma_registers(", "wgmma_registers_scaled(")
    text = text.replace("b, (0, 2 * PIECE * k), FORMAT)", "b, (0, 2 * PIECE * k), MAJOR, FORMAT, k > 0, 1)")
    made = kernel(text, MAJOR=ptx.K_MAJOR)
    A, B = exact((2, ROWS, 64), 1), exact((64, 64), 2)
    given = bits_of(A, ptx.BF16), bits_of(B, ptx.BF16), np.zeros((2, ROWS, 64), np.float32)
    trace = labkit.simulate(made, 2, 256, *given)
    assert not trace.errors, trace.errors
    assert np.array_equal(trace.outputs[2], A.astype(np.float64) @ B.T.astype(np.float64))


@pytest.mark.parametrize(
    "before, after, kind, part",
    [
        ("(t // 128, i, j)", "(t // 128, i + 4, j)", "misaligned", "16 rows of an MN-major tile"),
        ("(t // 128, i, j)", "(t // 128, i, j + 16)", "misaligned", "no multiple of 1024"),
        ("b, (0, r, c)", "b, (1, r, c)", "bounds", "the array ends before"),
        ("b, (0, r, c)", "b, (t // 128, r, c)", "bounds", "the array ends before"),
        ("    ptx.fence_async()\n", "", "proxy", "ptx.fence_async()"),
        ("    cuda.syncthreads()\n", "", "race", "syncthreads"),
    ],
)
def test_a_broken_product_of_mn_major_tiles_is_found_out(before, after, kind, part):
    assert MAJORS.count(before) == 1
    _, trace, _ = run_majors(MAJORS.replace(before, after), ptx.MN_MAJOR, ptx.MN_MAJOR, 72)
    assert any(f.kind == kind and part in f.message for f in trace.errors), trace.errors


def test_a_product_of_registers_and_an_mn_major_tile():
    text = REGISTERS.replace("b = cuda.shared.array((N, WIDE)", "b = cuda.shared.array((2, 64, 64)")
    text = text.replace(
        "b[r, (c // PIECE ^ r % 8) * PIECE + c % PIECE]", "b[r // 64, c, (r % 64 // 8 ^ c % 8) * 8 + r % 8]"
    )
    text = text.replace("wgmma_registers(", "wgmma_registers_major(")
    text = text.replace("b, (0, 2 * PIECE * k), FORMAT)", "b, (0, 2 * PIECE * k, 0), MAJOR, FORMAT)")
    names = dict(KIND=uint16, WIDE=64, PIECE=8, N=104, SUMS=52, ROWS=ROWS, FORMAT=ptx.BF16, MAJOR=ptx.MN_MAJOR)
    A, B = exact((2, ROWS, 64), 1), exact((104, 64), 2)
    made = kernel_in(text, ptx=ptx, uint16=uint16, uint32=uint32, **names)
    arguments = bits_of(A, ptx.BF16), bits_of(B, ptx.BF16), np.zeros((2, ROWS, 104), np.float32)
    trace = labkit.simulate(made, 2, 256, *arguments)
    assert not trace.errors, trace.errors
    assert np.array_equal(trace.outputs[2], A.astype(np.float64) @ B.T.astype(np.float64) + start(104))


@pytest.mark.parametrize(
    "form, major, part", [(ptx.TF32, 1, "BF16 or FP16 may lie MN-major"), (ptx.BF16, 2, "neither")]
)
def test_how_an_operand_lies_is_checked(form, major, part):
    with pytest.raises(labkit.simulator.errors.KernelError, match=part):
        run_majors(MAJORS, major, ptx.K_MAJOR, 64, form)


def test_more_than_64_mn_major_columns_need_an_axis_for_their_tiles():
    flat = MAJORS.replace("B_SHAPE", "(64, 64)").replace("b[r // 64, k", "b[k").replace("b[0, r", "b[r")
    flat = flat.replace("b, (0, r, c)", "b, (r, c)")
    _, trace, expected = run_majors(flat, ptx.K_MAJOR, ptx.MN_MAJOR, 64)
    assert not trace.errors and np.array_equal(trace.outputs[2], expected + start(64))
    with pytest.raises(labkit.simulator.errors.KernelError, match="72 columns needs an axis for its tiles of 64"):
        run_majors(flat, ptx.K_MAJOR, ptx.MN_MAJOR, 72)


def test_a_group_may_be_in_flight_while_others_are_waited_for():
    text = PRODUCT.replace("acc = cuda.local.array(SUMS, float32)", "acc = cuda.local.array((2, SUMS), float32)")
    text = text.replace("acc[i] = i", "acc[0, i] = i\n        acc[1, i] = 0").replace("acc[4 *", "acc[half, 4 *")
    first, rest = text.split("    for k in range(4):\n")
    _, rest = rest.split("    row = ")
    both = "".join(
        f"    for k in range({2 * h}, {2 * h + 2}):\n        ptx.wgmma(acc, ({h}, 0), N, a, "
        "(t // 128 * 64, 2 * PIECE * k), b, (0, 2 * PIECE * k), FORMAT)\n    ptx.wgmma_commit()\n"
        for h in range(2)
    )
    loop = "    ptx.wgmma_wait(1)\n    row = " + rest.replace("acc[half", "acc[0")
    made, trace, _ = run(first + both + loop + "    ptx.wgmma_wait(0)\n")
    assert not trace.errors, trace.errors
    made, trace, _ = run(first + both + loop.replace("acc[0", "acc[1") + "    ptx.wgmma_wait(0)\n")
    (finding,) = trace.errors
    assert (finding.kind, finding.line) == ("in-flight", line_of(made, "acc[1, 4"))


def mutant(before, after=""):
    assert PRODUCT.count(before) == 1, before
    return PRODUCT.replace(before, after)


@pytest.mark.parametrize(
    "before, after, kind, part",
    [
        ("    ptx.wgmma_wait(0)\n", "", "in-flight", "reads acc[0] while the product"),
        ("    ptx.wgmma_wait(0)\n", "    ptx.wgmma_wait(1)\n", "in-flight", "ptx.wgmma_wait(0)"),
        ("    ptx.wgmma_commit()\n", "", "in-flight", "ptx.wgmma_commit()"),
        ("    ptx.wgmma_fence()\n", "", "warpgroup", "ptx.wgmma_fence()"),
        ("    ptx.fence_async()\n", "", "proxy", "ptx.fence_async()"),
        ("    cuda.syncthreads()\n", "", "race", "syncthreads"),
        ("    ptx.wgmma_commit()\n", "    ptx.wgmma_commit()\n    acc[1] = 0\n", "in-flight", "writes acc[1]"),
        ("    ptx.wgmma_commit()\n", "    ptx.wgmma_commit()\n    a[t % 128, 0] = 0\n", "race", "reads it"),
        ("        ptx.wgmma(acc", "        if t < 192:\n            ptx.wgmma(acc", "warpgroup", "all four warps"),
        ("(t // 128 * 64, ", "(t // 64 * 32, ", "warpgroup", "another tile"),
        ("(t // 128 * 64, ", "(t // 128 * 60, ", "misaligned", "1024"),
        ("(t // 128 * 64, ", "(t // 16 * 8, ", "warpgroup", "another tile"),
        ("a, (t // 128 * 64, ", "a, (t // 128 * 64 + 8, ", "bounds", "the array ends before"),
        (", KIND, alignment=1024)\n    b", ", KIND)\n    b", "misaligned", "alignment=1024"),
        ("2 * PIECE * k), b", "2 * PIECE * k + 1), b", "misaligned", "multiple of 1024"),
        ("        acc[i] = i\n", "        acc[i // 2] = i\n", "uninitialised", "acc"),
    ],
)
def test_a_broken_product_is_found_out(before, after, kind, part):
    _, trace, _ = run(mutant(before, after))
    assert any(f.kind == kind and part in f.message for f in trace.errors), trace.errors


COPIED = PRODUCT.replace(
    "        a[r, (c // PIECE ^ r % 8) * PIECE + c % PIECE] = A[cuda.blockIdx.x, r, c]\n",
    "        if c % PIECE == 0:\n"
    "            ptx.cp_async(a, (r, (c // PIECE ^ r % 8) * PIECE), A, (cuda.blockIdx.x, r, c), 16, 16)\n",
).replace("    ptx.fence_async()\n", "    ptx.cp_async_commit()\n    ptx.cp_async_wait(0)\n    ptx.fence_async()\n")


def test_what_threads_copied_is_fenced_after_its_wait():
    """`cp_async` writes as threads do, and the tensor cores read by another way."""
    _, trace, expected = run(COPIED)
    assert not trace.errors, trace.errors
    assert np.array_equal(trace.outputs[2], expected + start(64))
    fence, wait = "    ptx.fence_async()\n", "    ptx.cp_async_wait(0)\n"
    _, trace, _ = run(COPIED.replace(wait + fence, fence + wait))
    (finding,) = trace.errors
    assert (finding.kind, finding.array) == ("proxy", "a")
    assert "after it has written, or waited for its copies" in finding.remedy


def limited(options, text):
    return text.replace("@cuda.jit\n", f"@cuda.jit({options})\n")


def moving(options, dec=40, inc=216):
    before = "    ptx.wgmma_fence()\n"
    moved = f"    if t < 128:\n        ptx.setmaxnreg_dec({dec})\n    else:\n        ptx.setmaxnreg_inc({inc})\n"
    return run(limited(options, mutant(before, moved + before)), blocks=1)[1].errors


@pytest.mark.parametrize(
    "options, dec, inc, there",
    [
        ("max_registers=96", 40, 216, 256 * 96),
        ("max_registers=97", 40, 216, 256 * 104),
        ("launch_bounds=(256, 2)", 40, 224, 256 * 128),
        ("launch_bounds=(384, 1), max_registers=255", 128, 232, 256 * 168),
        ("max_registers=128", 40, 216, None),
        ("launch_bounds=(256, 2)", 40, 216, None),
        ("launch_bounds=(384, 1)", 96, 232, None),
        ("launch_bounds=(256, 1)", 168, 168, None),  # nobody asks for more: each begins with 168
    ],
)
def test_a_block_has_the_registers_that_its_kernel_was_compiled_for(options, dec, inc, there):
    found = moving(options, dec, inc)
    assert [f.kind for f in found] == ["deadlock"] * (there is not None)
    assert all(f"a block of 256 threads gets {there:,} at most" in f.message for f in found)


@pytest.mark.parametrize(
    "options, dec, inc, told",
    [
        ("", 40, 216, r"`@cuda.jit\(launch_bounds=\(256, 1\)\)`"),
        ("launch_bounds=256", 40, 216, "the compiler ignores `ptx.setmaxnreg_dec`"),
        ("launch_bounds=256, max_registers=128", 40, 216, "the compiler ignores `ptx.setmaxnreg_dec`"),
        ("max_registers=128", 136, 216, r"`ptx.setmaxnreg_dec\(136\)` in a thread that has 128 registers"),
        ("max_registers=128", 40, "216)\n        ptx.setmaxnreg_inc(208", r"inc\(208\)` in a thread that has 216"),
    ],
)
def test_registers_that_cannot_move_are_refused(options, dec, inc, told):
    with pytest.raises(labkit.simulator.errors.KernelError, match=told):
        moving(options, dec, inc)


def test_registers_move_between_warpgroups():
    before = "    ptx.wgmma_fence()\n"
    moved = "    if t < 128:\n        ptx.setmaxnreg_dec(40)\n    else:\n        ptx.setmaxnreg_inc(216)\n"
    _, trace, expected = run(limited("max_registers=128", mutant(before, moved + before)))
    assert not trace.errors, trace.errors
    assert np.array_equal(trace.outputs[2], expected + start(64))
    _, trace, _ = run(limited("max_registers=128", mutant(before, moved.replace("t < 128", "t < 32") + before)))
    assert "warpgroup" in {f.kind for f in trace.errors}
    for count in (20, 44, 264):
        with pytest.raises(labkit.simulator.errors.KernelError, match="24 to 256 registers"):
            run(mutant(before, f"    ptx.setmaxnreg_inc({count})\n{before}"))


def test_n_and_the_format_are_checked():
    for before, after, part in [
        ("acc, 0, N, a", "acc, 0, 12, a", "8 to 256"),
        ("acc, 0, N, a", "acc, 0, t, a", "constant"),
        ("FORMAT)", "4)", "the format"),
    ]:
        with pytest.raises(labkit.simulator.errors.KernelError, match=part):
            run(mutant(before, after))
