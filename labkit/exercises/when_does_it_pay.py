"""The batch from which a layer is limited by arithmetic, if there is one."""

import ast

from labkit.checking import Above, Exercise, Questions
from labkit.checking.placed_cure import PlacedCure, operations, products_with

CASES = (  # rows, columns, bits of a weight, bits of an input or output, ridge in FLOP/byte
    (4096, 4096, 16, 16, 295),
    (11_008, 4096, 16, 16, 295),
    (4096, 11_008, 4, 16, 295),
    (1024, 1024, 16, 16, 295),
    (512, 512, 16, 16, 295),
    (4096, 4096, 32, 32, 20),
    (4096, 4096, 4, 16, 295),
    (1, 4096, 16, 16, 20),
    (80, 80, 32, 32, 20),  # each input pays for itself, exactly
    (81, 80, 32, 32, 20),  # and here a little is left
    (160, 160, 32, 32, 20),  # a whole number, without rounding
    (1, 1, 1, 1, 1),
    (2, 10_000_000, 16, 16, 1),  # so little above a whole number that it can be lost
    (589, 591, 8, 16, 295),
)

MOST_WEIGHTS = 10**10  # so that quotients of floats are exact enough, too


def make_launch(rng, count):
    """Ask for the cases above (count 0), or for this many random ones."""
    calls = CASES if count == 0 else tuple(draw_layer(rng) for _ in range(count))

    def find_mistake(answers):
        for (rows, columns, weight_bits, bits, ridge), answer in zip(calls, answers, strict=True):
            expected = find_smallest_batch(rows, columns, weight_bits, bits, ridge)
            if answer != expected or isinstance(answer, bool) != isinstance(expected, bool):
                return (
                    f"For {rows:,} x {columns:,} weights of {weight_bits} bits, inputs and outputs of {bits} bits, and "
                    f"a ridge at {ridge} FLOP/byte, the answer should be {expected!r} and is {answer!r}."
                )
        return ""

    return Questions(f"{count} layers" if count else "layers made for it", calls, find_mistake, MISTAKES)


def find_smallest_batch(rows, columns, weight_bits, bits, ridge):
    """Return the least batch whose FLOPs are at least the ridge times its bytes, None if there is none."""
    most = 1
    while not reaches_ridge(rows, columns, weight_bits, bits, ridge, most):
        most *= 2
        if most > 2**60:  # the intensity no longer grows
            return None
    least = most // 2
    while most - least > 1:
        middle = (least + most) // 2
        if reaches_ridge(rows, columns, weight_bits, bits, ridge, middle):
            most = middle
        else:
            least = middle
    return most


def reaches_ridge(rows, columns, weight_bits, bits, ridge, batch):
    """Tell whether a batch's arithmetic intensity is at least the ridge."""
    moved_bits = weight_bits * rows * columns + bits * batch * (rows + columns)
    return 8 * 2 * rows * columns * batch >= ridge * moved_bits


def _round_down(rows, columns, weight_bits, bits, ridge):
    gain = 16 * rows * columns - ridge * bits * (rows + columns)
    return ridge * weight_bits * rows * columns // gain if gain > 0 else None


def _leave_out_outputs(rows, columns, weight_bits, bits, ridge):
    return _round_up(16 * rows * columns - ridge * bits * columns, ridge * weight_bits * rows * columns)


def _leave_out_inputs(rows, columns, weight_bits, bits, ridge):
    return _round_up(16 * rows * columns - ridge * bits * rows, ridge * weight_bits * rows * columns)


def _count_products(rows, columns, weight_bits, bits, ridge):
    return _round_up(16 * rows * columns - ridge * bits * rows * columns, ridge * weight_bits * rows * columns)


def _divide(rows, columns, weight_bits, bits, ridge):
    gain = 16 * rows * columns - ridge * bits * (rows + columns)
    return ridge * weight_bits * rows * columns / gain if gain > 0 else None


def _round_up(gain, cost):
    return -(-cost // gain) if gain > 0 else None


def _pass_ridge(rows, columns, weight_bits, bits, ridge):
    gain = 16 * rows * columns - ridge * bits * (rows + columns)
    return ridge * weight_bits * rows * columns // gain + 1 if gain > 0 else None


MISTAKES = (
    (
        "the batch were the ridge",
        lambda rows, columns, weight_bits, bits, ridge: ridge,
        "Write both sides of FLOPs >= ridge * bytes with a batch of B, and solve for B.",
    ),
    (
        "inputs and outputs moved no bytes",
        lambda m, n, weight_bits, bits, ridge: find_smallest_batch(m, n, weight_bits, 0, ridge),
        "Count the numbers of each input and of its output, too: each takes `bits` bits.",
    ),
    (
        "inputs and outputs had the bits of a weight",
        lambda m, n, weight_bits, bits, ridge: find_smallest_batch(m, n, weight_bits, weight_bits, ridge),
        "Count their numbers with `bits`, and the weights alone with `weight_bits`.",
    ),
    (
        "a multiply-add were one FLOP",
        lambda m, n, weight_bits, bits, ridge: find_smallest_batch(m, n, weight_bits, bits, 2 * ridge),
        "It is two: multiply the number of weights by 2 where you count FLOPs.",
    ),
    (
        "bits were bytes",
        lambda m, n, weight_bits, bits, ridge: find_smallest_batch(m, n, weight_bits, bits, 8 * ridge),
        PlacedCure(
            "The ridge is in FLOPs per byte: multiply the FLOPs by 8, or divide the sum of all bits by 8.",
            products_with(2),
        ),
    ),
    (
        "the batch were rounded down",
        _round_down,
        PlacedCure("Round up: `-(-a // b)` in place of `a // b`.", operations(ast.FloorDiv)),
    ),
    (
        "the batch were not rounded",
        _divide,
        PlacedCure("A batch is a whole number: round up, by `-(-a // b)`.", operations(ast.Div)),
    ),
    (
        "a batch of 0 stood for none",
        lambda *layer: find_smallest_batch(*layer) or 0,
        "Return None where no batch is large enough.",
    ),
    (
        "an input and its output had as many numbers as the weights",
        _count_products,
        "Each input has `columns` numbers and its output `rows`: add the two.",
    ),
    (
        "inputs alone moved no bytes",
        _leave_out_inputs,
        "Each input has `columns` numbers and its output `rows`: count both.",
    ),
    (
        "outputs moved no bytes",
        _leave_out_outputs,
        "Each input has `columns` numbers and its output `rows`: count both.",
    ),
    (
        "a batch that reaches the ridge exactly were too small",
        _pass_ridge,
        PlacedCure("That batch is large enough: write `-(-a // b)` for `a // b + 1`.", operations(ast.FloorDiv)),
    ),
)


def draw_layer(rng):
    """Draw a layer; in a third of the draws its rows are such that an input hardly pays, or hardly does not."""
    weight_bits, bits = int(rng.choice((2, 4, 8, 16, 32, 64))), int(rng.choice((8, 16, 32)))
    ridge = int(rng.choice((1, 2, 7, 20, 82, 295, 591, 1000)))
    columns = int(10 ** rng.uniform(1.5, 5))
    rows = int(10 ** rng.uniform(1.5, 5))
    left = 16 * columns - ridge * bits  # an input pays if rows times this is more than ridge * bits * columns
    if left > 0 and rng.integers(3) == 0:
        rows = ridge * bits * columns // left + int(rng.integers(0, 3))
    return max(min(rows, MOST_WEIGHTS // columns), 1), columns, weight_bits, bits, ridge


EXERCISE = Exercise(
    title="When does it pay?",
    task="Return the smallest batch with which a layer is compute-bound, or None if it is memory-bound with any batch.",
    points=2,
    function="smallest_batch",
    make_launch=make_launch,
    sizes=((0,),),
    random_sizes=((range(200, 300),), (Above(300),)),
    machine="python",
)
