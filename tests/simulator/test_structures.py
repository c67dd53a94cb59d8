"""Records and vectors: their fields, lanes and copies, in every memory, with the bytes that each access touches."""

import numpy as np
import pytest
from cells import kernel_in
from numba.np.numpy_support import from_dtype

import labkit
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


def test_a_race_on_a_field_is_found_and_other_fields_are_left_alone():
    kernel = kernel_in("@cuda.jit\ndef kernel(p):\n    i = cuda.grid(1)\n    p[0].id = i\n    p[i].mass = 1")
    found = labkit.simulate(kernel, 1, N, particles()).errors
    assert [(f.kind, f.array, f.line) for f in found] == [("race", "p", found[0].line)]


def test_a_field_out_of_step_with_its_records_is_refused():
    packed = np.zeros(4, np.dtype([("a", np.int8), ("b", np.float32)]))
    with pytest.raises(LaunchError, match="align=True"):
        labkit.simulate(kernel_in("@cuda.jit\ndef kernel(p):\n    p[0].b = 1"), 1, 1, packed)
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
