"""Recorded times of convolutions, related to one another: records that `labkit.views.records` draws.

Layers are those of the cuDNN paper (Chetlur and others, 2014, Table 2), numbered as there, and the 3 x 3 layers of
VGG-16 and ResNet-50.
"""

from labkit import results
from labkit.conv import records
from labkit.conv.layers import TABLE_2, batched
from labkit.conv.problem import Convolution, Forward
from labkit.conv.records import BATCHES, CHOICES, Measured
from labkit.results import Results
from labkit.results.computed import add_computed

FASTEST = "the fastest that was timed"
FIRST_CALLS, ALL_CANDIDATES = "conv_first_calls", "torch, all candidates"
SEARCH, TORCH, TF32 = "cuDNN's search", "torch", "torch, TF32"
LIBRARIES = TORCH, SEARCH
GATHERED = "implicit_gemm/gathered"
GEMMS = GATHERED, "implicit_gemm/split"
BY_IMAGE = "cuBLAS per image"
RECORDED_NAMES = {BY_IMAGE: "im2col and cuBLAS, image by image"}
DIRECTIONS = {"forward": "y", "backward data": "x", "backward filter": "w"}


def layer_name(problem: Convolution) -> str:
    """Return a short name of a layer: its number in Table 2, or its channels and side."""
    sizes = problem.C, problem.H, problem.W, problem.K, problem.R, problem.S
    if sizes in TABLE_2:
        return f"layer {TABLE_2.index(sizes) + 1}: {problem.R} x {problem.S} taps"
    return f"{problem.C} to {problem.K} channels, {problem.H} x {problem.W}"


def choices(images: int = 128) -> Results:
    """Return what was chosen for each layer of Table 2, its time and error, and the fastest of all that was timed.

    The prediction is that of `conv.heuristic`; torch timed as many candidates as by default (10), or all. An implicit
    GEMM is there for comparison.
    """
    found, all_candidates = results.load(CHOICES), results.load(FIRST_CALLS)
    rows = []
    for problem in [Forward(*sizes) for sizes in batched(images, TABLE_2)]:
        of_layer = found.select(problem=str(problem))
        ours = {row["step"]: (row["time_ms"], row["error"]) for row in of_layer}
        libraries = {row["baseline"]: (row["baseline_time_ms"], row["baseline_error"]) for row in of_layer}
        (predicted,) = {row["step"] for row in of_layer if row["is_predicted_best"]}
        (all_ms,) = {row["time_ms"] for row in all_candidates.select(problem=str(problem), step=ALL_CANDIDATES)}
        chosen = {"conv.heuristic": ours[predicted], "torch, 10 candidates": libraries[TORCH]}
        chosen |= {ALL_CANDIDATES: (all_ms, None), SEARCH: libraries[SEARCH], "our implicit GEMM": ours[GATHERED]}
        fastest_ms = min(time_ms for time_ms, _ in (*ours.values(), *libraries.values()))
        for name, (time_ms, error) in chosen.items():
            rows.append(_row(problem, name, time_ms, FASTEST, fastest_ms, error=error))
    return Results(CHOICES, found.header, rows, found.missing_gpu)


def fft_and_winograd() -> Results:
    """Return the fastest FFT on each 3 x 3 layer, with the fastest Winograd as baseline, and the errors of both."""
    found = results.load("conv_choices_3x3")
    rows = []
    for problem in dict.fromkeys(row["problem"] for row in found.rows):
        of_layer = found.select(problem=problem)
        fft, winograd = (
            min((row for row in of_layer if row["step"].startswith(family)), key=lambda row: row["time_ms"])
            for family in ("fft", "winograd")
        )
        layer = records.problem_of(fft, Forward)
        rows.append(_row(layer, "FFT", fft["time_ms"], "Winograd", winograd["time_ms"], error=fft["error"]))
        rows.append(_row(layer, "Winograd", winograd["time_ms"], error=winograd["error"]))
    return Results(found.operation, _without_torch(found.header), rows, found.missing_gpu)


def first_calls() -> Results:
    """Return torch's calls of each layer in benchmark mode, with those of its heuristic as baseline."""
    found = results.load(FIRST_CALLS)
    plain = {row["problem"]: row for row in found.select(step="torch")}
    rows = []
    for row in found.select(step="torch, benchmark"):
        before = plain[row["problem"]]
        times = row["time_ms"], "torch's heuristic", before["time_ms"]
        made = _row(records.problem_of(row, Forward), "torch, benchmark mode", *times)
        saved_ms, paid_ms = before["time_ms"] - row["time_ms"], row["first_ms"] - before["first_ms"]
        rows.append(made | {"first_ms": row["first_ms"], "calls_until_it_pays": paid_ms / saved_ms})
    return Results(found.operation, found.header, rows, found.missing_gpu)


def by_images(baseline: str) -> Results:
    """Return the times of an implicit GEMM, the faster of two kernels, and of a baseline, by layer and images.

    Parameters
    ----------
    baseline
        An algorithm ("direct/registers"), torch, or "cuBLAS per image", as recorded by `labkit bench conv_batches`.
    """
    found, recorded_name = results.load(BATCHES), RECORDED_NAMES.get(baseline, baseline)
    rows = []
    for problem in dict.fromkeys(row["problem"] for row in found.select(dtype="float32")):
        of_layer = found.select(problem=problem, dtype="float32")
        times = {row["step"]: row["time_ms"] for row in of_layer}
        baselines = {row["baseline"]: row["baseline_time_ms"] for row in of_layer}
        gemm_ms, baseline_ms = min(times[name] for name in GEMMS), (times | baselines)[recorded_name]
        layer = records.problem_of(of_layer[0], Forward)
        rows.append(_row(layer, "implicit GEMM", gemm_ms, baseline, baseline_ms))
    header = found.header if recorded_name in baselines else _without_torch(found.header)
    return Results(found.operation, header, rows, found.missing_gpu)


def by_format(images: int = 128) -> Results:
    """Return the fastest of ours and of libraries on each layer of Table 2, in float32, TF32 and bfloat16."""
    found = results.load("conv_tensor")
    machine = results.slug(found.gpu)
    layers = [Forward(*sizes) for sizes in batched(images, TABLE_2)]
    of_float32 = {one.problem: one for one in records.measured(machine)}
    of_16_bits = {
        layer_name(one.problem): one for one in records.measured(machine, "bfloat16") if images == one.problem.N
    }
    tf32, rows = records.timed_in_tf32(machine), []
    for problem in layers:
        float32, bfloat16 = of_float32[problem], of_16_bits[layer_name(problem)]
        gemm_ms = min(timed.time_ms for name, timed in float32.ours.items() if name.startswith("implicit_gemm"))
        times = {
            ("implicit GEMM", "float32"): gemm_ms,
            ("labkit, float32", "float32"): float32.ours[float32.fastest].time_ms,
            ("cuDNN, float32", "float32"): _library_ms(float32),
            (TF32, "tf32"): tf32[problem][1] if problem in tf32 else None,
            ("labkit, bfloat16", "bfloat16"): bfloat16.ours[bfloat16.fastest].time_ms,
            ("cuDNN, bfloat16", "bfloat16"): _library_ms(bfloat16),
        }
        for (name, dtype), time_ms in times.items():
            if time_ms is not None:
                rows.append(_row(problem, name, time_ms, dtype=dtype))
    return Results("conv_tensor", found.header, rows, found.missing_gpu)


def by_direction(images: int = 128) -> Results:
    """Return the fastest of ours in the three directions on each layer of Table 2, with cuDNN's search as baseline."""
    found = results.load(CHOICES)
    rows = []
    for direction, result in DIRECTIONS.items():
        for one in records.measured(results.slug(found.gpu), result=result):
            if images == one.problem.N and SEARCH in one.baselines and layer_name(one.problem).startswith("layer"):
                ours_ms = one.ours[one.fastest].time_ms
                search_ms = one.baselines[SEARCH].time_ms
                rows.append(_row(one.problem, direction, ours_ms, SEARCH, search_ms))
    rows.sort(key=lambda row: row["layer"])
    return Results(CHOICES, found.header, rows, found.missing_gpu)


def _without_torch(header):
    """Return a header without torch's version, which a caption names beside baselines of torch."""
    return {name: value for name, value in header.items() if name != "torch"}


def _library_ms(measured: Measured) -> float:
    """Return the faster of torch and cuDNN's search: each of them sometimes misses a kernel."""
    return min(measured.baselines[name].time_ms for name in LIBRARIES)


def _row(problem, step, time_ms, baseline="", baseline_ms=0.0, **fields) -> dict:
    row = {"step": step, "problem": str(problem), "layer": layer_name(problem), "N": problem.N, "dtype": "float32"}
    row |= {"time_ms": time_ms}
    row |= {"flops": int(problem.flops), "min_bytes": int(problem.min_bytes())} | fields
    return add_computed(row | ({"baseline": baseline, "baseline_time_ms": baseline_ms} if baseline else {}))
