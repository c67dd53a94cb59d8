"""Answers that would take for ever or all of the memory: each is told, in little time and memory."""

import os
import resource
import sys

import pytest
from handed_in import SAXPY, setup_texts

from labkit.exercises import chapter_of
from labkit.grading.judge import Judge, compile_checks

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="counts the memory of a process in kilobytes")
CPU_S = 20
MEMORY_KB = 1 << 20
INSIDE = "        out[i] = a * x[i] + y[i]"


def question(body):
    """Return an answer to a question whose function has this body."""
    return "what-fits", "def fitting(rows, limit_bytes):\n    " + body.replace("\n", "\n    ")


def kernel(body):
    """Return a kernel that does this in place of its work."""
    return "write-saxpy", SAXPY.replace(INSIDE, "        " + body.replace("\n", "\n        "))


def cell(text):
    """Return a kernel with this text above it, which reads what may be a number N."""
    return "write-saxpy", text + SAXPY.replace("out.size", "N")


def loop(body, after=""):
    """Return a loop of the CPU's with this body."""
    return "the-wrong-loop", f"@njit\ndef product(A, B, C):\n    {body}\n{after}"


NESTED = "t = (1,)\nfor i in range(60):\n    t = (t, t)\n"
BOMBS = {
    # numbers that grow
    "a number squared again and again": question("n = 3\nwhile True:\n    n = n * n"),
    "a number squared in its place": question("n = 3\nwhile True:\n    n *= n"),
    "an element squared": question("n = [3]\nwhile True:\n    n[0] *= n[0]"),
    "a product of products by map": question("f = lambda n: n * n\nn = 3\nwhile True:\n    n = f(n)"),
    "a number from a long text": question("n = int('9' * 100000, 16)\nwhile True:\n    n = n * n"),
    "a number rounded to billions of places": question("return round(1, -1000000000)"),
    # what goes through many elements at once
    "sums of ranges": question("t = 0\nfor i in range(100000):\n    t += sum(range(190000))\nreturn t"),
    "sums by another name": question("f = sum\nfor i in range(100000):\n    f(range(190000))"),
    "sums by map": question("return len(list(map(sum, [range(190000)] * 100000)))"),
    "sorted again and again": question("l = list(range(100000))\nwhile True:\n    l.sort()"),
    "a range searched for a fraction": question("for i in range(100000):\n    0.5 in range(190000)"),
    "a list searched": question("l = [0] * 100000\nfor i in range(100000):\n    l.count(1)"),
    "lists that are added": question("return sum([[1] * 100] * 100000, [])"),
    "a copy per round": question("l = [0] * 100000\nfor i in range(100000):\n    m = l[:]"),
    "the front of a list, again and again": question("l = [0] * 190000\nfor i in range(190000):\n    l.insert(0, 1)"),
    "a lambda that calls itself twice": question("f = lambda g, n: g(g, n - 1) + g(g, n - 1) if n else 1\nf(f, 60)"),
    "zips of zips": question("l = range(190000)\nfor i in range(100000):\n    dict(zip(l, l))"),
    "a set per round": question("l = range(100000)\nfor i in range(100000):\n    set(l) & set(l)"),
    # nested values, which have more parts than there are
    "nested tuples compared": question(NESTED + NESTED.replace("t", "u") + "return t == u"),
    "nested tuples hashed": question(NESTED + "return {t: 1}"),
    "nested tuples as a key": question(NESTED + "d = {}\nd[t] = 1"),
    "nested tuples in a set": question(NESTED + "return len({t})"),
    "nested tuples written": question(NESTED + "return repr(t)"),
    "nested tuples in a text": question(NESTED + "return f'{t}'"),
    "nested tuples sorted": question(NESTED + "return sorted([t, t])"),
    "nested tuples returned": question(NESTED + "return t"),
    "nested lists compared": question(NESTED.replace("(t, t)", "[t, t]") + "return t < t"),
    # collisions
    "hashes that collide": question("return len({i * 2305843009213693951 for i in range(100000)})"),
    "keys that collide": question("d = {}\nfor i in range(190000):\n    d[i * 2305843009213693951] = i"),
    "collisions in a function of Python's": question(
        "l = [i * 2305843009213693951 for i in range(60000)]\nreturn len(frozenset(l))"
    ),
    # texts and lists that grow
    "a wide number in a text": question("return len('%2147483646d' % 1)"),
    "a text added to itself": question("s = 'a'\nwhile True:\n    s += s"),
    "a text repeated": question("return len('a' * 10000000000)"),
    "a list repeated": question("return len([0] * 1000000000)"),
    "a list repeated in its place": question("l = [0] * 1000\nl *= 1000000\nreturn len(l)"),
    "a list of itself twice": question("l = [0]\nwhile True:\n    l = [*l, *l]"),
    "a list put into itself": question("l = [0]\nwhile True:\n    l[0:0] = l"),
    "a list that extends itself": question("l = [0]\nwhile True:\n    l.extend(l)"),
    "texts joined by a long one": question("s = 'a' * 100000\nreturn len(s.join(s))"),
    "maps of maps": question("m = [1]\nfor i in range(190000):\n    m = map(abs, m)\nreturn next(m)"),
    # kernels
    "a kernel of 2**62 rounds": kernel("for k in range(2**62):\n    out[i] = a * x[i] + y[i]"),
    "2**62 rounds of nothing": kernel("for k in range(2**62):\n    pass"),
    "many rounds in each thread": kernel("for k in range(i * 1000000000):\n    out[i] = a * x[i] + y[i]"),
    "loops in loops": kernel("for j in range(100000):\n    for k in range(100000):\n        out[i] = x[i]"),
    "a kernel without an end": kernel("while True:\n    out[i] = a * x[i] + y[i]"),
    "a condition that stays": kernel("k = 0\nwhile k < 10:\n    k = k * 2\nout[i] = k"),
    "a very large local array": kernel("t = cuda.local.array(1 << 40, np.float32)\nout[i] = t[0]"),
    # what is read
    "many magics": cell("%time x\n" * 10000),
    "many empty lines": cell("\n" * 90000),
    "many questions to IPython": cell("x?\n" * 10000),
    "a deep expression": cell("x = " + "(" * 5000 + "1" + ")" * 5000),
    "a sum of many terms": cell("x = " + "+".join("1" * 40000)),
    "powers of powers": cell("N = 9 ** 9 ** 9 ** 9"),
    "a constant that is shifted far": cell("N = 1 << (1 << 60)"),
    "a long product": cell("N = 3 * 10 ** 60 * 10 ** 60 * 10 ** 60 * 10 ** 60"),
    # loops, and numba's compiler
    "a loop of 2**62 rounds": loop("for i in range(2**62):\n        C[0, 0] += A[0, 0]"),
    "a loop without an end": loop("while True:\n        C[0, 0] += A[0, 0]"),
    "thousands of statements": loop("C[0,0]=A[0,0]+C[0,0]\n    " * 3500 + "pass"),
    "as many statements as are compiled": loop("C[0,0]=A[0,0]+C[0,0]\n    " * 24 + "pass"),
    "a long expression in a loop": loop("C[0, 0] = " + " + ".join(["A[0, 0]"] * 900)),
}


@pytest.fixture(scope="module", autouse=True)
def compiled():
    compile_checks()


def judge_in_child(id, text):
    """Return a judgement, and the CPU seconds and kilobytes of the process that makes it."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(reading)
            resource.setrlimit(resource.RLIMIT_CPU, (2 * CPU_S, 2 * CPU_S))
            judgement = Judge(setup_texts(chapter_of(id)), seed=1).judgement(id, text)
            os.write(writing, f"{judgement.reason}: {judgement.message}"[:4000].encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, encoding="utf-8") as pipe:
        said = pipe.read()
    _, _, usage = os.wait4(child, 0)
    begun_with = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # a fork begins with the memory of its parent
    return said, usage.ru_utime + usage.ru_stime, max(0, usage.ru_maxrss - begun_with)


@pytest.mark.sample(6)
@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_told_in_little_time_and_memory(bomb):
    said, cpu_s, memory_kb = judge_in_child(*BOMBS[bomb])
    print(f"{cpu_s:.1f} s, {memory_kb >> 10} MB: {said}")
    assert said and not said.startswith("solved"), said
    assert cpu_s < CPU_S and memory_kb < MEMORY_KB, (cpu_s, memory_kb, said)
