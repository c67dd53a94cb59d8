"""numba-cuda's own tests: the simulator runs their kernels, or refuses them in a sentence.

`pytest -s tests/simulator/test_numba_suite.py` prints how many of each module run.
"""

import warnings

import numba_suite
import pytest

from labkit.cuda import FindingWarning
from labkit.simulator.errors import SimulatorError

pytestmark = pytest.mark.skipif(numba_suite.folder() is None, reason="numba-cuda is not installed")

# They read machine code, or types inside numba's compiler, and run no kernel for its results.
OF_THE_COMPILER = """
    test_sm_creation: test_numba_dtype test_numpy_dtype test_string_dtype test_type_with_struct_data_model
    test_localmem: test_numba_dtype test_numpy_dtype test_string_dtype test_type_with_struct_data_model
    test_warp_ops: test_shfl_sync_const_mode_val test_shfl_sync_const_mode_val_sm100
    test_warp_ops: test_vote_sync_const_mode_val test_vote_sync_const_mode_val_sm100
    test_sync: test_threadfence_block_codegen test_threadfence_codegen test_threadfence_system_codegen
    test_intrinsics: test_habs_ptx test_hadd_ptx test_hfma_ptx test_hmul_ptx test_hneg_ptx test_hsub_ptx
    test_vector_type: test_vector_type_alias
    test_cooperative_groups: test_false_cooperative_doesnt_link_cudadevrt
"""

# They ask for the words of numba's own error messages; ours are in test_beginner_errors.py.
OF_MESSAGES = """
    test_sm: test_invalid_array_type
    test_sm_creation: test_global_build_list test_invalid_1 test_invalid_2 test_invalid_3 test_invalid_4
    test_sm_creation: test_invalid_string_dtype
    test_localmem: test_invalid_string_dtype
    test_warp_ops: test_vote_sync_type_validation
    test_intrinsics: test_nonliteral_grid_error test_nonliteral_gridsize_error
"""

# What the simulator refuses, and the words it does it in.
REFUSED = {
    ("test_localmem", "test_struct_model_type_arr"): "is not a dtype",  # a type that numba was taught for the test
    ("test_cooperative_groups", "test_external_cooperative_func"): "cannot be called in a kernel",  # CUDA C++
    ("test_ffi", "test_ex_linking_cu"): "cannot be called in a kernel",
    ("test_ffi", "test_ex_extra_includes"): "cannot be called in a kernel",
    ("test_ffi", "test_ex_from_buffer"): "",
    ("test_cpointer", "test_ex_cpointer"): "",  # a raw address
    ("test_intrinsics", "test_issue_9229"): "5,663,031,296 threads",
}


def listed(text) -> set:
    """(module, test) pairs of a list above."""
    lines = (line.split(":") for line in text.strip().splitlines())
    return {(module.strip(), test) for module, tests in lines for test in tests.split()}


SKIPPED = listed(OF_THE_COMPILER) | listed(OF_MESSAGES)
CASES = [(m, c) for m in numba_suite.MODULES for c in numba_suite.cases(m)] if numba_suite.folder() else []


def short(module, case):
    return module.rsplit(".", 1)[1], case.rsplit(".", 1)[-1]


KERNELS = [pair for pair in CASES if short(*pair) not in SKIPPED]


@pytest.mark.parametrize("module, case", KERNELS)
@pytest.mark.sample(200)
def test_kernels_do_what_numba_expects(module, case):
    refusal = REFUSED.get(short(module, case))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FindingWarning)
        if refusal is None:
            numba_suite.run(module, case)
        else:
            with pytest.raises((SimulatorError, AttributeError)) as refused:
                numba_suite.run(module, case)
            assert refusal in str(refused.value)


def test_the_lists_name_tests_that_exist():
    present = {short(*pair) for pair in CASES}
    assert present >= SKIPPED | REFUSED.keys()


def test_nearly_all_run():
    """At least 95% of the kernels in the modules for memory, atomics, warps, reductions, groups and matmul."""
    print()
    run = total = 0
    for module in numba_suite.MODULES:
        kernels = [short(*pair) for pair in KERNELS if pair[0] == module]
        refused = sum(kernel in REFUSED for kernel in kernels)
        print(f"{module:35} {len(kernels) - refused:4} of {len(kernels):4} run")
        run, total = run + len(kernels) - refused, total + len(kernels)
    print(f"{run} of {total} kernels run: {run / total:.1%}")
    assert run >= 0.95 * total
