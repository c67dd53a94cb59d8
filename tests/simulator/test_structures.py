"""Records and vectors: their fields, lanes and copies, in every memory, with the bytes that each access touches."""

import numpy as np
import pytest
from cells import kernel_in
from numba.np.numpy_support import from_dtype

import labkit
from labkit import cuda
from labkit.simulator.errors import KernelError, LaunchError

PARTICLE = np.dtype([("mass", np.float32), ("at", np.float32, (3,)), ("id", np.int32)], align=True)
N = 32


def particles():
    rng = np.random.default_rng(5)
    made = np.zeros(N, PARTICLE)
    made["mass"], made["at"], made["id"] = rng.random(N), rng.random((N, 3)), np.arange(N)
    return made


@pytest.mark.parametrize("field", ["p[i].mass", 'p[i]["mass"]', "p.mass[i]", 'p["mass"][i]'])
def test_a_field_is_read_and_written_however_it_is_named(field):
    kernel = kernel_in(f"@cuda.jit\ndef kernel(p):\n    i = cuda.grid(1)\n    {field} += 1")
    trace = labkit.simulate(kernel, 1, N, particles())
    assert trace.errors == ()
    np.testing.assert_array_equal(trace.outputs[0]["mass"], particles()["mass"] + 1)
    np.testing.assert_array_equal(trace.outputs[0]["at"], particles()["at"])
    (load,) = [c for c in trace.sites if c.site.kind == "load"]
    assert (load.site.array, load.requests, load.sectors, load.bytes) == ("p", 1, N * PARTICLE.itemsize // 32, N * 4)


@pytest.mark.parametrize("text", ["p[order[i]].mass", 'p[order[i]]["mass"]', "whole(p, order, i)[i].mass"])
def test_what_names_a_record_is_computed_once(text):
    device = "@cuda.jit(device=True)\ndef whole(p, order, i):\n    if order[i] < 0:\n        return p\n    return p\n"
    kernel = kernel_in(f"{device}\n@cuda.jit\ndef kernel(p, order, out):\n    i = cuda.grid(1)\n    out[i] = {text}")
    trace = labkit.simulate(kernel, 1, N, particles(), np.arange(N), np.zeros(N))
    assert [s.accesses for s in trace.sites if s.site.text == "order[i]"] == [N]


def test_records_are_copied_through_shared_and_local_memory():
    kernel = kernel_in(
        """
        @cuda.jit
        def kernel(p, out):
            t = cuda.threadIdx.x
            s = cuda.shared.array(32, particle)
            own = cuda.local.array(2, particle)
            s[t] = p[t]
            own[1] = p[t]
            cuda.syncthreads()
            out[t] = s[31 - t]
            out[t].at[2] = own[1].at[0]
        """,
        particle=from_dtype(PARTICLE),
    )
    given = particles()
    trace = labkit.simulate(kernel, 1, N, given, np.zeros(N, PARTICLE))
    assert trace.errors == ()
    expected = given[::-1].copy()
    expected["at"][:, 2] = given["at"][:, 0]
    np.testing.assert_array_equal(trace.outputs[1], expected)


POINT = np.dtype([("x", np.float32), ("y", np.float32)])
BODY = np.dtype([("at", POINT), ("spin", np.float32, (3,)), ("id", np.int32)], align=True)
SHAPE = np.dtype([("closed", np.int8), ("bodies", BODY, (2, 3)), ("middle", POINT), ("id", np.int32)], align=True)


def numbers_in(records):
    """The numbers of the records, without what lies between them."""
    if records.dtype.names is None:
        return records.ravel().tolist()
    return [n for name in records.dtype.names for n in numbers_in(records[name])]


@pytest.mark.parametrize("dtype", [BODY, SHAPE])
def test_records_that_hold_records_are_copied_through_every_memory(dtype):
    kernel = kernel_in(
        """
        @cuda.jit
        def kernel(a, out):
            i = cuda.grid(1)
            shared = cuda.shared.array(32, dtype)
            own = cuda.local.array(2, dtype)
            own[1] = a[i]
            shared[i] = own[1]
            cuda.syncthreads()
            out[i] = shared[31 - i]
        """,
        dtype=from_dtype(dtype),
    )
    given = np.zeros(N, dtype)
    given.view(np.uint8)[:] = np.random.default_rng(3).integers(0, 60, given.nbytes)
    trace = labkit.simulate(kernel, 1, N, given, np.zeros(N, dtype))
    assert trace.errors == () and numbers_in(trace.outputs[1]) == numbers_in(given[::-1])


def test_fields_of_records_in_records_lie_where_numpy_has_them():
    @cuda.jit
    def kernel(shapes, out):
        i = cuda.grid(1)
        out[i] = shapes[i].bodies[1, 2].spin[1] + shapes.bodies[i, 0, 1].at.y + shapes[i].middle.x
        shapes[i].middle.y = i

    shapes = np.zeros(N, SHAPE)
    shapes["bodies"]["spin"] = np.arange(N * 18, dtype=np.float32).reshape(N, 2, 3, 3)
    shapes["bodies"]["at"]["y"] = np.arange(N * 6, dtype=np.float32).reshape(N, 2, 3)
    shapes["middle"]["x"] = 0.5
    trace = labkit.simulate(kernel, 1, N, shapes, np.zeros(N, np.float32))
    found = shapes["bodies"]
    np.testing.assert_array_equal(
        trace.outputs[1], found[:, 1, 2]["spin"][:, 1] + found[:, 0, 1]["at"]["y"] + shapes["middle"]["x"]
    )
    np.testing.assert_array_equal(trace.outputs[0]["middle"]["y"], np.arange(N))


def test_a_race_on_a_field_is_found_and_other_fields_are_left_alone():
    kernel = kernel_in("@cuda.jit\ndef kernel(p):\n    i = cuda.grid(1)\n    p[0].id = i\n    p[i].mass = 1")
    found = labkit.simulate(kernel, 1, N, particles()).errors
    assert [(f.kind, f.array, f.line) for f in found] == [("race", "p", found[0].line)]


def test_a_field_out_of_step_with_its_records_is_refused():
    packed = np.zeros(4, np.dtype([("a", np.int8), ("b", np.float32)]))
    with pytest.raises(LaunchError, match="align=True"):
        labkit.simulate(kernel_in("@cuda.jit\ndef kernel(p):\n    p[0].b = 1"), 1, 1, packed)
    complex_last = np.zeros(4, np.dtype([("a", np.int32), ("b", np.complex64)], align=True))
    with pytest.raises(LaunchError, match="at byte 4 of 12, which should be multiples of 8"):
        labkit.simulate(kernel_in("@cuda.jit\ndef kernel(p):\n    p[0].b = 1"), 1, 1, complex_last)
    with pytest.raises(KernelError, match="no field `weight`; they have mass, at, id"):
        labkit.simulate(kernel_in("@cuda.jit\ndef kernel(p):\n    p[0].weight = 1"), 1, 1, particles())


def test_vectors_are_made_of_numbers_and_of_vectors():
    kernel = kernel_in(
        """
        @cuda.jit
        def kernel(y):
            a = cuda.float2(1, 2.5)
            b = cuda.float32x4(a, cuda.int32x1(3.9).x, a.y)
            if y[0] > 0:
                b = cuda.float4(9, 9, 9, 9)
            y[0] = b.x
            y[1] = b.y
            y[2] = b.z
            y[3] = b.w
        """
    )
    np.testing.assert_array_equal(labkit.simulate(kernel, 1, 1, np.zeros(4)).outputs[0], [1, 2.5, 3, 2.5])
    with pytest.raises(KernelError, match="takes 4 numbers in all, not 3"):
        labkit.simulate(kernel_in("@cuda.jit\ndef kernel(y):\n    v = cuda.float4(1, 2, 3)"), 1, 1, np.zeros(1))
    with pytest.raises(KernelError, match="a vector of 2 numbers and has no `z`"):
        labkit.simulate(kernel_in("@cuda.jit\ndef kernel(y):\n    y[0] = cuda.float2(1, 2).z"), 1, 1, np.zeros(1))


BLENDED = {
    "tuples of different arrays": """
        t = (x, 0)
        if i > 3:
            t = (z, 1 - 1)
        out[i] = t[0][i] + t[1]""",
    "tuples on paths of their own": """
        t = (x, 1)
        if i > 3:
            t = (z, 2)
            out[i] = t[0][i]
        else:
            out[i] = t[0][i]""",
    "records of different arrays": """
        t = p[i]
        if i > 3:
            t = q[i]
        out[i] = t.id""",
    "a tuple, then a number": """
        t = (x[i], 2)
        if i > 3:
            t = z[i]
            out[i] = t
        else:
            out[i] = t[0]""",
    "a tuple, or a number": """
        if i > 3:
            t = (z[i], 2)
            out[i] = t[0]
        else:
            t = x[i]
            out[i] = t""",
    "tuples of two lengths": """
        t = (x, 2, 3)
        if i > 3:
            t = (5, z)
            out[i] = t[1][i]
        else:
            out[i] = t[0][i]""",
    "a number, or a record": """
        t = z[i]
        if i > 3:
            out[i] = t
        else:
            t = p[i]
            out[i] = t.id""",
    "a record, or a vector": """
        t = p[i]
        if i > 3:
            t = cuda.float64x2(z[i], 1)
            out[i] = t.x
        else:
            out[i] = t.id""",
    "an argument, or a number": """
        if i > 3:
            z = z[i]
            out[i] = z
            return
        else:
            out[i] = p[i].id
            return""",
    "a result": """
        t = chosen(i > 3, x, z)
        out[i] = t[i]""",
}


@pytest.mark.parametrize("body", BLENDED.values(), ids=BLENDED)
def test_threads_on_two_paths_hold_parts_of_their_own_by_one_name(body):
    device = "@cuda.jit(device=True)\ndef chosen(test, x, z):\n    if test:\n        return z\n    return x\n\n\n"
    kernel = kernel_in(f"{device}@cuda.jit\ndef kernel(x, z, p, q, out):\n        i = cuda.grid(1){body}")
    p, q = particles(), particles()
    q["id"] += 100
    x, z = p["id"].astype(np.float64), q["id"].astype(np.float64)
    out = labkit.simulate(kernel, 1, N, x, z, p, q, np.zeros(N)).outputs[4]
    np.testing.assert_array_equal(out, np.where(np.arange(N) > 3, z, x))


def test_an_array_or_a_tuple_that_no_thread_set_is_refused_where_it_is_read():
    for given, read in (("x", "t[i]"), ("(1, i)", "t[1]")):
        text = (
            f"@cuda.jit\ndef kernel(x):\n    i = cuda.grid(1)\n    if i > 40:\n        t = {given}\n    x[i] = {read}"
        )
        with pytest.raises(KernelError, match="no thread that reads `t` has set it"):
            labkit.simulate(kernel_in(text), 1, N, np.zeros(N))


def test_a_variable_of_clashing_types_is_told_where_it_is_read():
    text = """
        @cuda.jit
        def kernel(y):
            for v in y:
                s = v
            for v in (cuda.int2(1, 2), cuda.int2(3, 4)):
                s = v.x
            y[0] = s"""
    np.testing.assert_array_equal(labkit.simulate(kernel_in(text), 1, 1, np.zeros(2)).outputs[0], [3, 0])
    with pytest.raises(KernelError, match="`v` is"):
        labkit.simulate(kernel_in(text + " + v"), 1, 1, np.zeros(2))


@pytest.mark.parametrize(
    "written", ["p[63 - t].at[1] = p[t].at[2 - 1]", "p[63 - t].mass += p[t].mass", "p[63 - t] = p[t]"]
)
@pytest.mark.parametrize("space", ["global", "shared"])
def test_a_race_names_the_record(written, space):
    kernel = kernel_in(
        f"""
        @cuda.jit
        def kernel(given, out):
            t = cuda.threadIdx.x
            {"p = given" if space == "global" else "p = cuda.shared.array(64, particle)"}
            p[t] = given[t]
            cuda.syncthreads()
            {written}
            out[t] = p[t]
        """,
        particle=from_dtype(PARTICLE),
    )
    given = np.concatenate([particles(), particles()])
    races = [f for f in labkit.simulate(kernel, 1, 64, given, given.copy()).errors if f.line == f.other_line]
    assert races
    for race in races:
        assert race.index[0] in {race.threads[0].thread[0], race.threads[1].thread[0]} and len(race.index) == 1
        assert f"[{race.index[0]}]:" in race.message


def test_a_record_that_nothing_wrote_is_named():
    kernel = kernel_in(
        """
        @cuda.jit
        def kernel(out):
            s = cuda.shared.array(8, particle)
            s[0].at[0] = 1
            s[0].at[1] = 1
            cuda.syncthreads()
            out[cuda.threadIdx.x] = s[5].at[2]
        """,
        particle=from_dtype(PARTICLE),
    )
    (finding,) = labkit.simulate(kernel, 2, 8, np.zeros(8, np.float32)).errors
    assert (finding.kind, finding.index) == ("uninitialised", (5,))
