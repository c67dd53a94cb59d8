"""Recorded measurements: written, found again, and fit to be quoted."""

import json

import pytest

from labkit import results
from labkit.machine import device
from labkit.results import Results

ROWS = [{"step": "naive", "size": 64, "time_ms": 2.0}, {"step": "tiled", "size": 64, "time_ms": 1.0}]
FIELDS = set("operation step problem dtype time_ms tflops gb_s baseline baseline_time_ms ratio error".split())


def test_what_is_saved_is_loaded(tmp_path):
    path = results.save(Results("gemm", {"gpu": "NVIDIA T4"}, ROWS), "NVIDIA T4", tmp_path)
    assert path == tmp_path / "nvidia-t4" / "gemm.json"
    assert results.load("gemm", folder=tmp_path) == results.load("gemm", "nvidia-t4", tmp_path)
    assert results.load("gemm", folder=tmp_path).header == {"gpu": "NVIDIA T4"}
    assert results.recorded(tmp_path) == [("nvidia-t4", "gemm")]


def test_a_file_has_a_line_for_each_row_and_nothing_that_can_be_computed(tmp_path):
    measured = {"step": "tiled", "time_ms": 0.3, "flops": 6 * 10**9, "min_bytes": 10**9, "baseline_time_ms": 0.1}
    computed = {"tflops": 6e9 / 0.3 / 1e9, "gb_s": 1e9 / 0.3 / 1e6, "ratio": 0.1 / 0.3}
    path = results.save(Results("gemm", {"gpu": "NVIDIA T4"}, [measured | computed] * 2), "NVIDIA T4", tmp_path)
    text = path.read_text(encoding="utf-8")
    assert json.loads(text)["rows"] == [measured] * 2 and b"\r" not in path.read_bytes()
    assert len([line for line in text.splitlines() if '"step"' in line]) == 2
    assert results.load("gemm", "nvidia-t4", tmp_path).rows == [measured | computed] * 2


def test_what_a_row_says_otherwise_than_it_is_computed_stays(tmp_path):
    """Such as the ratio of medians over several runs, or a speed without the FLOPs that it counts."""
    rows = [{"time_ms": 2.0, "baseline_time_ms": 1.0, "ratio": 0.6}, {"time_ms": 2.0, "tflops": 3.0}]
    path = results.save(Results("gemm", {}, rows), "T4", tmp_path)
    assert json.loads(path.read_text(encoding="utf-8"))["rows"] == rows


def test_a_record_without_rows_is_stored_too(tmp_path):
    results.save(Results("gemm", {"gpu": "NVIDIA T4"}, []), "NVIDIA T4", tmp_path)
    assert results.load("gemm", "nvidia-t4", tmp_path) == Results("gemm", {"gpu": "NVIDIA T4"}, [])


@pytest.mark.parametrize("machine, operation", results.recorded())
def test_recorded_files_are_as_they_would_be_written(machine, operation, tmp_path):
    written = results.save(results.load(operation, machine), machine, tmp_path)
    assert written.read_text(encoding="utf-8") == (results.FOLDER / machine / written.name).read_text(encoding="utf-8")


def test_rows_are_selected_by_their_fields():
    found = Results("gemm", {}, ROWS)
    assert found.select(step="tiled") == [ROWS[1]]
    assert found.select(step="tiled", size=1) == []
    assert found.select(step=["tiled", "naive"]) == found.select(step={"naive": "first", "tiled": "last"}) == ROWS
    assert found.select(step=()) == found.select(step="tile") == []


def test_a_table_has_a_line_for_each_row_that_differs_and_names_the_gpu():
    rows = [{"step": "tiled", "size": 64, "time_ms": 1.0, "baseline": baseline} for baseline in ("cuBLAS", "torch")]
    found = Results("gemm", {"gpu": "NVIDIA T4", "date": "2026-11-22"}, [*ROWS, *rows])
    table = found.table(["step", "time_ms", "baseline"], size=64)
    assert table.columns == ["step", "time, ms", "baseline"]
    assert table.rows == [["naive", 2.0, ""], ["tiled", 1.0, ""], ["tiled", 1.0, "cuBLAS"], ["tiled", 1.0, "torch"]]
    assert found.table({"step": "kernel"}).rows == [["naive"], ["tiled"]]
    assert found.table({"step": "kernel"}).columns == ["kernel"]
    assert repr(table).endswith("\nMeasured on NVIDIA T4 on 2026-11-22.")
    assert "Measured on NVIDIA T4 on 2026-11-22.</caption>" in table._repr_html_()


def test_a_table_of_an_unknown_field_says_which_there_are():
    with pytest.raises(KeyError, match="gemm has no field 'speed': choose from step, size, time_ms"):
        Results("gemm", {}, ROWS).table(["speed"])


def test_a_recorded_table_takes_rows_by_their_fields():
    table = results.table("gemm", ["step", "tflops"], problem="4096x4096x4096", step=["naive", "tuned"])
    assert [step for step, _ in table.rows] == ["naive", "tuned"]
    assert table.caption.startswith("Measured on NVIDIA H100 80GB HBM3 on 20")


@pytest.mark.parametrize(
    ("name", "heading"),
    [
        ("tflops", "TFLOP/s"),
        ("baseline_time_ms", "baseline time, ms"),
        ("workspace_bytes", "workspace, bytes"),
        ("M", "M"),
    ],
)
def test_a_heading_has_the_unit_apart(name, heading):
    assert results.heading(name) == heading


def test_absent_results_are_told_which_there_are(tmp_path):
    with pytest.raises(KeyError, match="for 'conv': none were recorded"):
        results.load("conv", folder=tmp_path)
    for gpu in ("T4", "L4"):
        results.save(Results("gemm", {}, ROWS), gpu, tmp_path)
    with pytest.raises(KeyError, match="on 'v100': name one of l4, t4"):
        results.load("gemm", "v100", tmp_path)


A100, H100, L4 = "NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3", "NVIDIA L4"


@pytest.fixture
def three_gpus(tmp_path):
    for gpu, capability in {A100: "8.0", H100: "9.0", L4: "8.9"}.items():
        results.save(Results("gemm", {"gpu": gpu, "compute_capability": capability}, ROWS), gpu, tmp_path)
    results.save(Results("gemm", {"cpu": "Xeon"}, ROWS), "AAA Xeon", tmp_path)
    return tmp_path


def on(gpu, capability, monkeypatch):
    here = device.Device("gpu", gpu, f"compute capability {capability}")
    monkeypatch.setattr(device, "detect", lambda: here)


def test_the_record_of_this_machines_gpu_is_taken(three_gpus, monkeypatch):
    on(L4, "8.9", monkeypatch)
    found = results.load("gemm", folder=three_gpus)
    assert found.gpu == L4 and found.missing_gpu == ""
    assert found.caption == "Measured on NVIDIA L4."


def test_a_gpu_without_a_record_gets_that_of_the_nearest_which_is_named(three_gpus, monkeypatch):
    on("NVIDIA H200", "9.0", monkeypatch)
    found = results.load("gemm", folder=three_gpus)
    assert found.gpu == H100 and found.missing_gpu == "NVIDIA H200"
    assert found.caption == f"Measured on {H100}; this machine's NVIDIA H200 has no record of gemm."
    path = results.save(found, H100, three_gpus)
    assert "H200" not in path.read_text(encoding="utf-8")


def test_without_a_gpu_the_record_of_the_one_that_is_simulated_is_taken(three_gpus, monkeypatch):
    monkeypatch.setattr(device, "detect", lambda: device.Device("simulator", device.MODELLED_GPU, "none was found"))
    found = results.load("gemm", folder=three_gpus)
    assert found.gpu == H100 and found.caption == f"Measured on {H100}."


def test_a_cpus_record_is_taken_where_no_gpu_has_one(tmp_path, monkeypatch):
    results.save(Results("loops", {"cpu": "EPYC"}, ROWS), "EPYC", tmp_path)
    on(L4, "8.9", monkeypatch)
    assert results.load("loops", folder=tmp_path).caption == "Measured on EPYC."


def test_the_nearest_machine_is_the_gpu_itself_then_one_of_its_capability_then_the_most_similar(tmp_path):
    gpus = {
        "NVIDIA A100-SXM4-80GB": "8.0",
        "NVIDIA B200": "10.0",
        "NVIDIA H100 80GB HBM3": "9.0",
        "NVIDIA H100 PCIe": "9.0",
        "NVIDIA GH999": "9.0",
    }
    for gpu, capability in gpus.items():
        results.save(Results("gemm", {"gpu": gpu, "compute_capability": capability}, ROWS), gpu, tmp_path)
    results.save(Results("gemm", {"cpu": "Xeon"}, ROWS), "Xeon", tmp_path)
    results.save(Results("conv", {"gpu": "NVIDIA H200", "compute_capability": "9.0"}, ROWS), "NVIDIA H200", tmp_path)

    def order(*gpu):
        return list(results.nearest("gemm", *gpu, tmp_path))

    h100, pcie, unknown = "nvidia-h100-80gb-hbm3", "nvidia-h100-pcie", "nvidia-gh999"
    assert order("NVIDIA H200", (9, 0)) == [h100, pcie, unknown, "nvidia-b200", "nvidia-a100-sxm4-80gb"]
    assert order("NVIDIA GH999", (9, 0))[0] == unknown
    assert order("NVIDIA H100 PCIe", (9, 0))[:2] == [pcie, h100]
    assert order("NVIDIA B200", (10, 0, "a"))[0] == "nvidia-b200"
    assert order("NVIDIA L4", (8, 9))[0] == "nvidia-a100-sxm4-80gb"  # by its figures alone
    assert results.nearest("gemm", "NVIDIA T4", (7, 5), tmp_path)["nvidia-b200"] == (10, 0)
    assert results.nearest("blas", "NVIDIA T4", (7, 5), tmp_path) == {}


def test_names_become_folders():
    assert results.slug("NVIDIA H100 80GB HBM3") == "nvidia-h100-80gb-hbm3"


@pytest.mark.parametrize("machine, operation", results.recorded())
def test_recorded_files_say_on_what_and_when_they_were_measured(machine, operation):
    found = results.load(operation, machine)
    assert found.operation == operation and found.rows
    assert {"date", "cpu", "python"} <= found.header.keys()


@pytest.mark.parametrize("machine", [where for where, what in results.recorded() if what == "gemm"])
def test_recorded_gemm_holds_its_steps_beside_their_baselines(machine):
    from labkit import gemm
    from labkit.cuda import cpp

    found = results.load("gemm", machine)
    assert {"gpu", "driver", "compute_capability"} <= found.header.keys()
    steps = gemm.ladder("fp32")
    assert {row["step"] for row in found.select(baseline="cuBLAS fp32")} == {step.slug for step in steps}
    with_twin = {step.slug for step in steps if f"gemm/fp32/{step.name}" in cpp.names()}
    assert {row["step"] for row in found.select(baseline="CUDA C++")} == with_twin
    for row in found.rows:
        assert row.keys() >= FIELDS
        assert row["ratio"] == pytest.approx(row["baseline_time_ms"] / row["time_ms"])
        assert row["error"] < 1e-5
    twins = found.select(baseline="CUDA C++")
    assert all(row["ratio"] > 0.9 for row in twins), "within 10% of the C++ twin"


OF_FRAGMENTS = {"shared_load_requests", "shared_load_wavefronts"}
OF_COPIES = {f"global_{kind}_{field}" for kind in ("load", "store") for field in ("requests", "sectors")}
QUOTIENTS = (
    *("winograd f2x2", "fft tiled", "batch fused", "channels_last in_registers", "batch_backward masked_again"),
    *("rows three_reads", "forward online", "forward q_outer"),
)
LEFT_OPEN = {kernel: {"flops"} for kernel in QUOTIENTS} | {  # and what tensor cores and copies do
    "fp32 tuned": {"shared_store_wavefronts"},
    "tensor mma": {"flops"},
    "tensor pipelined": {"flops", "shared_store_wavefronts"} | OF_FRAGMENTS,
    "tensor persistent": {"flops", "shared_store_wavefronts", "shared_atomic_wavefronts"} | OF_FRAGMENTS | OF_COPIES,
    "forward mma": {"flops"} | OF_FRAGMENTS,
    "forward persistent": {"flops", "shared_store_wavefronts", "shared_atomic_wavefronts"} | OF_FRAGMENTS | OF_COPIES,
}


@pytest.mark.parametrize("machine", [where for where, what in results.recorded() if what == "counters"])
def test_recorded_counters_agree_with_the_gpus(machine):
    """Requests, sectors, FLOPs and wavefronts are exact, once the compiler's merging is taken out; caches are near."""
    rows = results.load("counters", machine).rows
    assert len({row["kernel"] for row in rows}) >= 20
    for row in rows:
        wanted = row["predicted"] * row["sass_factor"]
        if row["reason"]:
            assert row["counter"] in {"l2_hit_rate", "global_atomic_sectors"} | LEFT_OPEN.get(row["kernel"], set()), row
            continue
        match row["counter"]:
            case "l1_hit_rate" | "l2_hit_rate":
                assert abs(row["measured"] - wanted) <= 0.10, row
            case "bytes_from_l2":
                assert row["measured"] == pytest.approx(wanted, rel=0.05), row
            case "dram_read_bytes" | "dram_write_bytes":
                assert row["measured"] == pytest.approx(wanted, rel=0.15), row
            case "shared_load_wavefronts" | "shared_store_wavefronts" | "shared_atomic_wavefronts" if row["bound"]:
                assert row["measured"] == pytest.approx(wanted, rel=0.02), row
            case _:
                assert row["measured"] == wanted, row


@pytest.mark.parametrize("machine", [where for where, what in results.recorded() if what == "gemm_tensor"])
def test_recorded_steps_on_tensor_cores_are_as_exact_as_their_baselines(machine):
    from labkit import gemm

    rows = results.load("gemm_tensor", machine).rows
    assert {row["step"] for row in rows} >= {step.slug for step in gemm.ladder("tensor")}
    assert all(row["error"] < 2 * row["baseline_error"] for row in rows)


@pytest.mark.parametrize("machine", [where for where, what in results.recorded() if what == "gemm_calls"])
def test_recorded_calls_are_as_exact_as_cublas(machine):
    from labkit.bench.gemm_calls import CALLS, DTYPES

    rows = results.load("gemm_calls", machine).rows
    assert [(row["dtype"], row["call"]) for row in rows] == [(dtype, call.name) for dtype in DTYPES for call in CALLS]
    assert all(row["error"] < 2 * row["baseline_error"] for row in rows)


@pytest.mark.parametrize("machine", [where for where, what in results.recorded() if what == "gemm_shapes"])
def test_recorded_products_of_all_shapes_are_as_exact_as_cublas(machine):
    *products, reading = results.load("gemm_shapes", machine).rows
    assert reading["step"] == "read"
    assert len(products) == 68 and all(row["error"] < 2 * row["baseline_error"] for row in products)
