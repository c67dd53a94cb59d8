"""Exercise 01.1: a triple loop that runs one of its loops over the wrong side."""

from labkit.exercises.exercise import Exercise
from labkit.exercises.matmuls import matmul_loop

SIZES = ((5, 9, 7), (12, 3, 8))  # M, N, K


EXERCISE = Exercise(
    id="01.1",
    title="The wrong loop",
    task="This product is right for square matrices alone. One of its loops has the wrong length: find and mend it.",
    points=2,
    function="product",
    launch=matmul_loop,
    sizes=SIZES,
    drawn=((range(13, 30), range(10, 30), range(11, 30)),),
    machine="cpu",
)
