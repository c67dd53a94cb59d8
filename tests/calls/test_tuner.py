"""Every call that has a choice can be tuned: its candidates are timed, and the fastest computes it from then on."""

import numpy as np
import pytest

from labkit import attention, conv, cuda, gemm, norm, softmax
from labkit.calls import tuner, tuning
from labkit.calls.call import forget
from labkit.calls.choice import override_choice
from labkit.calls.plan import make_plan
from labkit.calls.route import routes
from labkit.formats import BF16, FP16, FP32
from labkit.machine.device import Device


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    """A cache folder of this test's own, and no plans."""
    monkeypatch.setattr(tuning, "user_cache_path", lambda name: tmp_path / name)
    tuning._stored_choices.cache_clear()
    forget()
    yield tmp_path
    tuning._stored_choices.cache_clear()
    forget()


@pytest.fixture
def slow():
    """Candidates that are the slowest."""
    return set()


@pytest.fixture
def timed(monkeypatch, slow):
    """What was timed, as on a GPU."""
    launches = {}

    def times_ms(of):
        launches.update(of)
        return {candidate: 100.0 if candidate in slow else float(len(of) - i) for i, candidate in enumerate(of)}

    if not cuda.on_gpu():
        monkeypatch.setattr(tuner.device, "current", lambda: Device("gpu", "a GPU", ""))
        monkeypatch.setattr(cuda, "on_gpu", lambda: False)
    monkeypatch.setattr(tuning.timing, "gpu_times_ms", times_ms)
    return launches


def chosen(run):
    """The first candidates of the choices that a call makes, and their questions."""
    made = []
    forget()
    with override_choice(lambda name, question, candidates: made.append((name, question, candidates[0])) or candidates):
        run()
    return made


RNG = np.random.default_rng(0)


def array(*shape):
    return cuda.to_device(RNG.standard_normal(shape).astype(np.float32))


def of_attention():
    """dO, Q, K, V, O and log-sum-exp."""
    Q, K, V, O, lse, dO, *_ = attention.AttentionBackward(1, 1, 5, 16).operands(FP16)
    return [cuda.to_device(X) for X in (dO, Q, K, V, O, lse)]


CALLS = {
    "attend": lambda: (attention.attend, of_attention()[1:4], {"causal": True}),
    "attend_backward": lambda: (attention.attend_backward, of_attention(), {"deterministic": False}),
    "layer_norm": lambda: (norm.layer_norm, [array(3, 40), array(40), array(40)], {}),
    "layer_norm_backward": lambda: (
        norm.layer_norm_backward,
        [array(3, 40), array(3, 40), array(40), array(3), array(3)],
        {},
    ),
    "rms_norm": lambda: (norm.rms_norm, [array(3, 40)], {}),
    "batch_norm": lambda: (norm.batch_norm, [array(2, 8, 4, 4)], {}),
    "batch_norm of pixels": lambda: (norm.batch_norm, [array(2, 4, 4, 8)], {"layout": "NHWC"}),
    "batch_norm_backward": lambda: (
        norm.batch_norm_backward,
        [array(2, 8, 4, 4), array(2, 8, 4, 4), None, None, array(8), array(8)],
        {},
    ),
    "softmax": lambda: (softmax.softmax, [array(3, 40)], {}),
    "softmax_backward": lambda: (softmax.softmax_backward, [array(3, 40), array(3, 40)], {}),
    "multiply": lambda: (gemm.multiply, [array(9, 12), array(12, 8)], {}),
    "forward": lambda: (conv.forward, [array(1, 2, 5, 5), array(3, 2, 3, 3)], {"padding": 1}),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.sample(6)
def test_candidates_are_timed_and_the_fastest_is_taken_by_later_calls(timed, slow, name):
    call, arrays, options = CALLS[name]()
    before = chosen(lambda: call(*arrays, **options))
    slow |= {candidate for *_, candidate in before}
    times_ms = tuner.tune(call, *arrays, most=3, **options)
    assert 1 < len(times_ms) <= 3 and list(times_ms.values()) == sorted(times_ms.values()) and {*times_ms} == {*timed}
    tuning._stored_choices.cache_clear()  # as in a later process
    after = chosen(lambda: call(*arrays, **options))
    fastest = next(iter(times_ms))
    kind = call.__module__.split(".")[1]
    (old, *_), (new, *_) = ([made for made in found if made[0] == kind] for found in (before, after))
    assert old[:2] == new[:2] and new[2] == fastest != old[2] and old[2] in times_ms


def test_calls_that_were_made_before_are_worked_out_anew(timed):
    x = array(3, 40)
    softmax.softmax(x)
    norm.rms_norm(x)
    assert len(routes) == 2
    tuner.tune(softmax.softmax, x, most=2)
    assert len(routes) == 1
    norm.rms_norm(x)
    assert len(routes) == 1


def test_each_candidate_is_planned_for_each_set_of_arrays(timed, monkeypatch):
    made = []

    def noted(operation, arrays, **options):
        made.append((arrays, options.get("reserve")))
        return make_plan(operation, arrays, **options)

    monkeypatch.setattr(tuner, "make_plan", noted)
    monkeypatch.setattr(tuner, "MAX_SETS", 3)
    tuner.tune_problem(norm.layer_norm, norm.RowForward(2, 40), FP32, most=2)
    _, *planned = made  # the first asks what the choice is
    assert len(timed) == 2 and all(len(launches) == 3 for launches in timed.values()) and len(planned) == 6
    assert len({id(arrays) for arrays, _ in planned}) == 3 and len({id(reserve) for _, reserve in planned}) == 1
    for launches in timed.values():
        launches[0](cuda.stream())


def test_the_largest_workspace_comes_first_and_serves_all_others(timed):
    tuner.tune(conv.forward, array(1, 2, 5, 5), array(3, 2, 3, 3), padding=1)
    problem = conv.Forward(1, 2, 5, 5, 3, 3, 3, top=1, bottom=1, left=1, right=1)
    needed_bytes = [algorithm.workspace_bytes(problem, FP32) for algorithm in timed]
    assert needed_bytes == sorted(needed_bytes, reverse=True) and needed_bytes[0] > needed_bytes[-1]


def test_what_is_tuned_holds_for_its_sizes_and_format_alone(timed):
    x, other = array(3, 40), array(3, 41)
    untouched = chosen(lambda: (softmax.softmax(other), norm.rms_norm(x)))
    tuner.tune(softmax.softmax, x)
    assert chosen(lambda: (softmax.softmax(other), norm.rms_norm(x))) == untouched
    bits = cuda.to_device(BF16.encode(np.zeros((3, 40))))
    assert "bfloat16" in chosen(lambda: softmax.softmax(bits, format="bfloat16"))[0][1]


def test_a_tuned_step_that_does_not_take_an_array_as_it_lies_leaves_it_to_the_next(timed):
    """The choice is kept by sizes; that one of them begins elsewhere is seen when it is launched."""
    x = np.zeros((1, 8, 32, 32), np.float32)
    ranked = tuner.tune(norm.batch_norm, cuda.to_device(x), most=100)
    with_copies = next(one for one in ranked if "overlapped" in str(one))
    (_, question, _), *_ = chosen(lambda: norm.batch_norm(cuda.to_device(x)))
    tuning.store_choice("norm", question, with_copies)
    shifted = cuda.to_device(np.zeros(x.size + 1, np.float32))[1:].reshape(x.shape)
    assert (norm.batch_norm(shifted).copy_to_host() == 0).all()


def test_problems_are_given_to_the_call_as_they_are(timed):
    problem = attention.AttentionDecode(2, 2, 1, 16, 40, 1)
    tuner.tune_problem(attention.attend_cached, problem, BF16, ("lengths", "table"), most=2)
    problem = norm.RowForward(2, 40, "rms")
    tuner.tune_problem(norm.rms_norm, problem, BF16, most=2)
    tuner.tune_problem(norm.batch_norm, norm.BatchForward(1, 2, 3, 3, False, "NHWC"), FP32, most=2)
    questions = tuning.read_choices(tuning.cache_file("attention", tuning.gpu_name()))
    questions |= tuning.read_choices(tuning.cache_file("norm", tuning.gpu_name()))
    assert sorted(questions) == [
        "AttentionDecode 2x2/1x1/40x16, bfloat16",
        "BatchForward 1x2x3x3 NHWC, float32",
        "RowForward 2x40 rms, bfloat16",
    ]


def test_what_cannot_be_tuned_is_told_in_a_sentence(timed):
    with pytest.raises(TypeError, match="is not tuned: give a call of an operation"):
        tuner.tune(print)
    from labkit import layouts

    with pytest.raises(ValueError, match="layouts has one way to compute this, and nothing to choose"):
        tuner.tune(layouts.convert, array(1, 2, 3, 4), "NCHW", "NHWC")


def test_without_a_gpu_nothing_is_timed():
    if cuda.on_gpu():
        pytest.skip("there is one")
    with pytest.raises(RuntimeError, match="tuning times kernels on a GPU, and none is in use here"):
        tuner.tune(softmax.softmax, array(3, 40))
    with pytest.raises(RuntimeError, match="on a GPU"):
        tuner.tune_problem(softmax.softmax, softmax.Forward(3, 40), FP32)


@pytest.mark.needs("gpu")
@pytest.mark.parametrize("name", CALLS)
def test_a_gpu_times_and_remembers(name):
    call, arrays, options = CALLS[name]()
    times_ms = tuner.tune(call, *arrays, most=2, **options)
    assert min(times_ms.values()) > 0 and list(times_ms.values()) == sorted(times_ms.values())
