"""Messages of `check`, to things that are not answers and to wrong ones."""

import re
from dataclasses import replace

import numpy as np
import pytest
from answers import variants
from exercise_cells import cell, function

from labkit import check, cuda
from labkit.checking.check import add_line, judge
from labkit.checking.source import run_cell
from labkit.exercises import exercise


@cuda.jit
def saxpy(x, y, out):
    out[0] = x[0]


def executed_from_a_string():
    namespace = {"cuda": cuda}
    exec("@cuda.jit\ndef saxpy(a, x, y, out):\n    out[0] = a", namespace)
    return namespace["saxpy"]


@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        (5, "this is of type int"),
        (None, "this is of type NoneType"),
        (np.zeros(3), "this is of type ndarray"),
        (print, "this is of type builtin_function_or_method"),
        (saxpy, "takes 3 arguments and is given 4"),
        (executed_from_a_string(), "define it with `def` in a cell or a file"),
        (lambda a, x, y, out: None, "`def saxpy(...)`"),
    ],
)
def test_what_is_no_kernel_gets_a_sentence(kernel, said):
    verdict = check("write-saxpy", kernel)
    assert not verdict.passed
    assert said in verdict.message


@pytest.mark.parametrize("id", ["9.9", "03.5", "matmuls", "pad_the_tile", ""])
def test_an_unknown_exercise_is_refused_in_a_sentence(id):
    with pytest.raises(ValueError, match=rf"^there is no exercise '{re.escape(id)}'; .* '[a-z-]+'\.$"):
        check(id, saxpy)


def test_a_mistyped_exercise_gets_the_name_that_was_meant():
    with pytest.raises(ValueError, match="such as 'write-saxpy'"):
        check("write-saxpi", saxpy)


@pytest.mark.parametrize("written", ["", "@cuda.jit\n", "@njit\n"])
@pytest.mark.parametrize(("id", "decorator"), [("write-saxpy", "@cuda.jit\n"), ("order-the-loops", "@njit\n")])
def test_another_decorator_or_none_is_told_the_right_one(id, decorator, written):
    assert cell(id).count(decorator) == 1
    verdict = check(id, function(id, cell(id).replace(decorator, written)), seed=1)
    if written == decorator:
        assert verdict.passed
    else:
        assert (verdict.reason, verdict.points) == ("not a kernel", 0)
        assert f"write `{decorator.strip()}` in the line above its `def`." in verdict.message


def test_a_blank_names_the_line_that_still_waits():
    verdict = check("write-saxpy", function("write-saxpy", cell("write-saxpy", "blank")))
    assert verdict.reason == "unfinished"
    assert verdict.line == 3
    assert "line 3" in verdict.message


def test_a_half_finished_answer_names_the_dots_that_are_left():
    text = cell("write-saxpy").replace("        out[i] = a * x[i] + y[i]", "        ...")
    verdict = check("write-saxpy", function("write-saxpy", text))
    assert (verdict.reason, verdict.line) == ("unfinished", 5)


def test_dots_in_place_of_a_value_are_named_as_well():
    text = cell("write-saxpy").replace("a * x[i] + y[i]", "...")
    verdict = check("write-saxpy", function("write-saxpy", text))
    assert (verdict.reason, verdict.line) == ("unfinished", 5)


def test_a_missing_constant_is_asked_for():
    verdict = check(
        "choose-the-tile", function("choose-the-tile", cell("choose-the-tile").replace("TILE = 16", "TILE = 16.0"))
    )
    assert "TILE must be a whole number" in verdict.message


def test_a_wrong_result_names_the_element_the_values_and_the_line():
    verdict = check("write-saxpy", function("write-saxpy", cell("write-saxpy").replace("+ y[i]", "- y[i]")))
    assert verdict.reason == "result"
    assert "out[0] is" in verdict.message
    assert "should be" in verdict.message
    assert verdict.line == 5


def test_a_verdict_names_the_one_line_of_several_that_stored_what_is_wrong():
    two_stores = (
        "        if i < 100:\n            out[i] = a * x[i] + y[i]\n        else:\n            out[i] = a * x[i]"
    )
    text = cell("write-saxpy").replace("        out[i] = a * x[i] + y[i]", two_stores)
    verdict = check("write-saxpy", function("write-saxpy", text))
    assert verdict.line is None  # the other line may be wrong, too
    told = "- Line 8 stores all that is wrong, and what line 6 stored is right."
    assert verdict.message.splitlines()[-1] == told


def test_lines_that_all_store_wrong_elements_are_told_together():
    two_stores = "        if i < 100:\n            out[i] = a * x[i]\n        else:\n            out[i] = y[i]"
    text = cell("write-saxpy").replace("        out[i] = a * x[i] + y[i]", two_stores)
    verdict = check("write-saxpy", function("write-saxpy", text))
    assert "- Lines 6 and 8 all store wrong elements" in verdict.message


def test_elements_never_written_are_said_to_be_that():
    verdict = check("rows-and-columns", function("rows-and-columns", cell("rows-and-columns", "blank")))
    assert "C[0, 16] was never written" in verdict.message
    assert "1,280 of 1,536 elements were never written: columns 16 to 95." in verdict.message


def test_an_output_that_is_read_before_it_is_written_is_explained():
    verdict = check(
        "write-the-matmul",
        function("write-the-matmul", cell("write-the-matmul").replace("C[row, col] =", "C[row, col] +=")),
    )
    assert "It was computed from what C held, and C held nothing yet" in verdict.message


def test_a_race_names_two_threads_and_two_lines():
    verdict = check("put-the-barrier-back", function("put-the-barrier-back", cell("put-the-barrier-back", "blank")))
    assert verdict.reason == "race"
    assert verdict.message.count("thread (") == 2
    assert verdict.message.count("line ") >= 2


def test_a_verdict_of_an_index_outside_tells_the_fix():
    beyond = cell("write-saxpy").replace("if i < out.size", "if i <= out.size")
    verdict = judge(exercise("write-saxpy"), function("write-saxpy", beyond), seed=1)
    assert verdict.reason == "bounds" and verdict.message.replace("\n- ", " ") == verdict.trace.errors[0].message
    assert verdict.message.endswith("is too wide by 1 here: write `i < out.size`.")


def test_a_verdict_of_a_race_tells_the_fix():
    early = cell("pass-it-on").replace("cuda.syncthreads()", "pass")
    verdict = check("pass-it-on", function("pass-it-on", early))
    assert verdict.reason == "race" and verdict.message.endswith("\n- " + verdict.trace.errors[0].remedy)


def test_a_budget_names_the_line_that_uses_most_of_it():
    verdict = check("neighbours-together", function("neighbours-together", cell("neighbours-together", "blank")))
    assert verdict.reason == "budget"
    assert "512 sectors loaded" in verdict.message
    assert "at most 256" in verdict.message
    assert "`x[i]` in line 10" in verdict.message


def test_a_float64_that_no_float32_meets_is_told_with_its_line():
    text = cell("a-length-without-overflow")
    scaled = text.replace("largest * sqrt(total)", "largest * sqrt(total) * np.float32(1.0 / X.shape[1] * X.shape[1])")
    verdict = check("a-length-without-overflow", function("a-length-without-overflow", scaled))
    line = next(i for i, line in enumerate(scaled.splitlines(), 1) if "1.0 / X.shape[1]" in line)
    assert (verdict.reason, verdict.line) == ("budget", line)
    assert f"Line {line} computes in float64; a number such as `1.0` is float64" in verdict.message


def test_what_is_refused_is_a_sentence_that_begins_with_its_line():
    verdict = check("write-saxpy", function("write-saxpy", cell("write-saxpy").replace("y[i]", "z[i]")))
    assert (verdict.reason, verdict.line) == ("refused", 5)
    assert verdict.message.startswith("Line 5: ") and verdict.message.endswith("as an argument.")


def test_a_budget_of_nothing_is_told_in_words():
    verdict = check("pad-the-tile", function("pad-the-tile", cell("pad-the-tile", "blank")))
    assert " bank conflicts, and none are allowed (each costs one more wavefront)." in verdict.message


def test_a_budget_that_arrays_share_names_the_one_that_takes_too_much():
    reads = next(variant for variant in variants("alpha-and-beta") if variant.what == "C is loaded and then dropped")
    verdict = check("alpha-and-beta", function("alpha-and-beta", reads.source(cell("alpha-and-beta"))))
    assert "903 of them are of C, which may have none: look at `C[row, col]`" in verdict.message
    thin = cell("choose-the-register-tile").replace("= 32, 32, 4, 4", "= 32, 32, 8, 2")
    verdict = check("choose-the-register-tile", function("choose-the-register-tile", thin))
    assert "of them are of A_tile" in verdict.message
    assert verdict.line == next(
        site.site.line for site in verdict.trace.sites if site.site.text == "A_tile[y + i * rows, k]"
    )


def test_constants_with_which_there_is_no_launch_are_named():
    verdict = check(
        "choose-the-register-tile",
        function(
            "choose-the-register-tile", cell("choose-the-register-tile").replace("= 32, 32, 4, 4", "= 32, 32, 3, 3")
        ),
    )
    assert verdict.reason == "launch"
    assert "TM must divide BM: 3 does not divide 32" in verdict.message


def test_a_failure_on_drawn_sizes_names_them_and_its_seed_draws_them_again():
    kernel = function("write-saxpy", cell("write-saxpy").replace("i < out.size", "i < 1000"))
    verdict = check("write-saxpy", kernel, seed=5)
    assert verdict.reason == "unwritten"
    (size,) = verdict.trace.outputs[3].shape
    assert f"run on {size:,} elements" in repr(verdict)
    assert "drawn with seed 5" in repr(verdict)
    assert verdict.seed == 5
    assert check("write-saxpy", kernel, seed=5) == verdict
    assert check("write-saxpy", kernel) != check("write-saxpy", kernel)


def test_a_duty_that_is_not_done_is_named():
    direct = next(variant for variant in variants("pass-it-on") if variant.reason == "duty")
    verdict = check("pass-it-on", function("pass-it-on", direct.source(cell("pass-it-on"))))
    assert "not in the way that the exercise is about. There are 0 shared loads" in verdict.message
    assert "of what another thread stored in the first or last block, and at least 64 are needed" in verdict.message


def test_a_longer_number_is_not_taken_for_the_line():
    assert add_line(1, "a race with line 12") == "Line 1: a race with line 12"
    assert add_line(12, "a race with line 12") == "a race with line 12"


def test_a_right_answer_is_told_what_it_used_of_its_budget():
    verdict = check("write-the-tiled-matmul", function("write-the-tiled-matmul", cell("write-the-tiled-matmul")))
    assert "Used on the first of them: 30,720 of 30,720 global loads, 3,840 of 3,840 global stores" in verdict.message
    assert "Advice" not in verdict.message


def test_a_right_answer_gets_the_advice_of_the_simulator():
    text = (
        cell("write-the-tiled-matmul").replace("A_tile[y, x]", "A_tile[x, y]").replace("A_tile[k, y]", "A_tile[y, k]")
    )
    verdict = check("write-the-tiled-matmul", function("write-the-tiled-matmul", text))
    assert verdict.passed
    assert "`A_tile[x, y]` takes" in verdict.message.partition("Advice: Line ")[2]


def test_a_result_that_does_not_depend_on_the_tiles_is_told_so():
    text = cell("put-the-barrier-back").replace("A_tile[y, k] * B_tile[k, x]", "A_tile[y, k] * b")
    text = text.replace(
        "            total +=",
        "            b = B[start + k, col] if start + k < K and col < N else zero\n            total +=",
    )
    rules = replace(
        exercise("put-the-barrier-back"),
        make_launch=lambda *sizes: replace(exercise("put-the-barrier-back").make_launch(*sizes), budgets=()),
    )
    verdict = judge(rules, function("put-the-barrier-back", text), seed=1)
    assert verdict.reason == "duty"
    assert "In a second run, with all that is loaded from shared memory times" in verdict.message
    assert verdict.message.endswith("Take both factors of each product from the tiles in shared memory.")


@pytest.mark.parametrize(
    "way", ["cuda.atomic.add({}, (row, k), np.float32(0))", "cuda.atomic.max({}, (row, k), A[row, k])"]
)
def test_an_input_that_an_atomic_leaves_as_it_is_was_changed_all_the_same(way):
    text = cell("write-the-matmul").replace("A[row, k] *", way.format("A") + " *")
    verdict = check("write-the-matmul", function("write-the-matmul", text))
    assert (verdict.reason, verdict.line) == ("input changed", 7)
    assert verdict.message == "Line 7: `A[row, k]` changes A, which is an input: only load from it."


def test_atomics_count_as_loads_and_stores():
    text = cell("alpha-and-beta").replace(
        "alpha * total + beta * C[row, col]", "alpha * total + beta * cuda.atomic.add(C, (row, col), zero)"
    )
    verdict = check("alpha-and-beta", function("alpha-and-beta", text))
    assert verdict.passed
    text = text.replace("if beta == 0:", "if beta == 0 and cuda.atomic.add(C, (row, col), zero) != 1:")
    assert "of them are of C, which may have none" in check("alpha-and-beta", function("alpha-and-beta", text)).message


def test_an_answer_stands_alone():
    names = run_cell("@cuda.jit(device=True)\ndef twice(x):\n    return x + x\n", "<another cell>", {"cuda": cuda})
    text = cell("neighbours-together").replace("value + value", "twice(value)")
    kernel = run_cell(text, "<the answer>", {"cuda": cuda, "np": np, "twice": names["twice"]})["double"]
    verdict = check("neighbours-together", kernel)
    assert (
        verdict.message == "`twice` comes from elsewhere, and an answer stands alone: define `twice` in its own cell."
    )
    assert check(
        "neighbours-together",
        run_cell(cell("neighbours-together").replace("def double", "def mine"), "<alias>", {"cuda": cuda})["mine"],
    ).message == ("This is the function `mine`: write your own, `def double(...)`.")


def test_the_run_that_the_verdict_speaks_of_is_there_for_the_views():
    verdict = check("put-the-barrier-back", function("put-the-barrier-back", cell("put-the-barrier-back", "blank")))
    assert verdict.trace.errors[0].kind == "race"


def test_a_verdict_in_html_shows_code_as_text():
    text = cell("write-saxpy").replace("out[i] =", "x[i * (i < out.size)] =")
    html = check("write-saxpy", function("write-saxpy", text))._repr_html_()
    assert "&lt; out.size" in html
    assert "i < out.size" not in html


@pytest.mark.parametrize(
    ("id", "wrong"),
    [("the-wrong-loop", "one product too few"), ("put-the-barrier-back", None), ("what-fits", "the slowest")],
)
def test_what_a_function_says_that_it_wraps_is_not_its_text(id, wrong):
    """`inspect` would look there."""
    variant = next(each for each in variants(id) if each.what == wrong or (wrong is None and each.reason == "race"))
    answer = function(id, variant.source(cell(id)), f"<wrong {id}>")
    getattr(answer, "py_func", answer).__wrapped__ = getattr(function(id, cell(id)), "py_func", function(id, cell(id)))
    assert not check(id, answer).passed


def test_an_answer_that_is_no_text_of_its_own_gets_a_sentence():
    named = eval("lambda rows, limit_bytes: None")
    named.__name__ = "fitting"
    assert "define it with `def`" in check("what-fits", named).message


def test_a_share_within_its_budget_is_told_in_percent_of_what_it_is_a_share_of():
    verdict = check("gemm-and-gelu", function("gemm-and-gelu", cell("gemm-and-gelu")), seed=1)
    assert ", 25% of the shared loads are made while no copy is in flight (at most 25%)" in verdict.message


def test_a_share_over_its_budget_is_told_in_percent():
    (late,) = (answer for answer in variants("gemm-and-gelu") if answer.what == "all before it is used")
    verdict = check("gemm-and-gelu", function("gemm-and-gelu", late.source(cell("gemm-and-gelu"))), seed=1)
    assert (
        "100% of the shared loads are made while no copy is in flight, and at most 25% are allowed" in verdict.message
    )


def test_wrong_elements_without_a_pattern_are_drawn_with_words_for_their_signs():
    text = cell("write-saxpy").replace("+ y[i]", "+ y[i] * np.float32((i * i) % 7 != 1)")
    verdict = check("write-saxpy", function("write-saxpy", text), seed=1)
    assert 1 < len(verdict.picture) <= 13 and all(len(row) == 32 for row in verdict.picture[:-2])
    assert "# wrong, . right" in verdict.picture[-1] and verdict.picture[0] in repr(verdict)
    assert (
        f'<pre role="img" aria-label="Wrong elements" style="line-height: 1">{verdict.picture[0]}'
        in verdict._repr_html_()
    )
    assert "<pre" not in check("write-saxpy", function("write-saxpy", cell("write-saxpy")))._repr_html_()


def test_a_store_that_no_thread_reaches_is_named():
    never = cell("write-saxpy").replace("i < out.size", "i > out.size")
    verdict = judge(exercise("write-saxpy"), function("write-saxpy", never), 1)
    assert verdict.message.endswith("- No thread reaches line 5: is the condition around it right?"), verdict


def test_a_function_without_a_return_is_told_so():
    forgotten = cell("when-does-it-pay").replace("return -(-cost", "batch = -(-cost")
    verdict = check("when-does-it-pay", function("when-does-it-pay", forgotten))
    assert "The function returns nothing: end it with `return`" in verdict.message


def test_a_line_that_reads_an_output_which_holds_nothing_yet_is_named():
    source = cell("alpha-and-beta")
    start = source.index("        if beta == 0:")
    kernel = function("alpha-and-beta", source[:start] + "        C[row, col] = alpha * total + beta * C[row, col]\n")
    assert "Line 22 reads C: leave that out where its factor is 0" in check("alpha-and-beta", kernel, seed=1).message
