"""Plain functions: what of Python they may use, and that nobody gets out of it."""

import os
import signal
from dataclasses import dataclass
from typing import NamedTuple

import pytest

from labkit.checking.in_child import Allowance, TooMuch, run_in_child
from labkit.checking.restricted_python import readable_attributes, run_calls
from labkit.checking.source import run_cell
from labkit.simulator.errors import KernelError


@dataclass(frozen=True)
class Fact:
    size: int
    tag: str = "a"

    @property
    def double(self):
        return 2 * self.size

    def secret(self):
        return 42


class Pair(NamedTuple):
    first: int
    second: tuple


def asked(body, *calls, parameters="x", before=""):
    text = f"{before}\n\ndef f({parameters}):\n    " + body.replace("\n", "\n    ") + "\n"
    return run_calls(run_cell(text, f"<{hash(text)}>", {})["f"], [call for call in calls] or [(3,)])


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return x + 1", 4),
        ("return -(-x // 2)", 2),
        ("total = 0\nfor i in range(x):\n    total += i\nreturn total", 3),
        ("n = 0\nwhile n * n < x:\n    n += 1\nreturn n", 2),
        ("return [i * i for i in range(x) if i][-1]", 4),
        ("return {k: v for k, v in zip('ab', (1, 2))}['b']", 2),
        ("return min((3, 1, 2), key=lambda n: -n)", 3),
        ("return f'{x} and {x + 1}'", "3 and 4"),
        ("a, *b = 1, 2, 3\nreturn b", [2, 3]),
        ("found = []\nfound.append(x)\nreturn found", [3]),
        ("return 'odd' if x % 2 else None", "odd"),
        ("'''Says so.'''\nreturn isinstance(x, int) and not isinstance(x, tuple)", True),
        ("return sorted({3, 1, 2})[0]", 1),
        ("pass", None),
        ("n: int = x\nreturn n", 3),
        ("return next((i for i in range(9) if i > x), None)", 4),
        ("return next((i for i in range(2) if i > x), None)", None),
        ("found = {}\nfound.setdefault('a', []).append(x)\nfound.update(b=1)\nreturn found.pop('a')", [3]),
        ("return repr((x, 'a'))", "(3, 'a')"),
        ("return [i + j for i in range(2) for j in range(i) if j < 9]", [1]),
        ("def double(n: int) -> int:\n    return 2 * n\nreturn double(x) + double(1)", 8),
        ("def go(n):\n    return n if n < 2 else go(n - 1) + go(n - 2)\nreturn go(x + 5)", 21),
        ("total = []\ndef add(n):\n    total.append(n + x)\nadd(1)\nadd(2)\nreturn total", [4, 5]),
        ("return sorted((3, -1, 2), key=abs)[0] ** 2", 1),
        ("assert x == 3, 'no three'\nassert x\nreturn x", 3),
        ("n = 2\nn **= x\nreturn n + 2**64 + 10**-1 + (x + 1) ** 0.5", 8 + 2**64 + 0.1 + 2.0),
        ("table = [2]\ntable[0] **= 5\nreturn table, (-1) ** 10**6", ([32], 1)),
    ],
)
def test_python_as_one_writes_it_is_known(body, expected):
    assert asked(body) == [expected]


def test_helpers_and_constants_of_the_cell_are_known():
    before = (
        "MOST = 2\nNAMES = ('a', ('b', None))\n\n\ndef g(n: int) -> 'int':\n    return n if n < MOST else g(n - 1)\n"
    )
    assert asked("return g(x), NAMES[1]", before=before) == [(1, ("b", None))]


def test_types_are_passed_over_as_a_grade_does():
    assert asked("return x", parameters="x: numbers.Real", before="import numbers") == [3]


def test_facts_are_read_and_methods_are_not():
    assert readable_attributes(Fact(1)) == {"size", "tag", "double"} and readable_attributes((Pair(1, (Fact(2),)),)) > {
        "first",
        "size",
    }
    assert asked("return x.size + x.double + len(x.tag)", (Fact(2),)) == [7]
    assert asked("return x.first + x.second[0].size", (Pair(1, (Fact(2),)),)) == [3]
    with pytest.raises(KernelError, match="line 4: `x.secret` is not known here"):
        asked("return x.secret()", (Fact(2),))
    with pytest.raises(KernelError, match="did you mean `size`"):
        asked("return x.sise", (Fact(2),))


ESCAPES = {
    "an import": "import os\nreturn os.getcwd()",
    "builtins by name": "return __import__('os').getcwd()",
    "open": "return open('/etc/passwd').read()",
    "eval": "return eval('1 + 1')",
    "the class of a value": "return x.__class__.__mro__",
    "the class of a text": "return ''.__class__",
    "getattr": "return getattr(x, 'secret')",
    "type": "return type(x)",
    "a format that reads attributes": "return '{0.__class__}'.format(x)",
    "the same by a map": "return str.format_map('{x.__class__}', {'x': x})",
    "a format behind a colon": "return f'{x:1000000000}'",
    "a generator's frame": "return (i for i in [1]).gi_frame",
    "a function's globals": "return (lambda: 0).__globals__",
    "a helper's code": "return f.__code__",
    "globals": "return globals()",
    "vars": "return vars(x)",
    "a global": "global y\ny = x\nreturn y",
    "a function named as the counter": "def count__():\n    return None\nreturn 1",
    "a function named as another hook": "def operate__(sign, a, b):\n    return 1\nreturn 1 + 1",
    "a function's frame": "def g():\n    return 1\nreturn g.__globals__",
    "a function with a name to keep": "def g(a=[]):\n    return a\nreturn g()",
    "a decorated function": "@sorted\ndef g():\n    return 1\nreturn 1",
    "a name of the function around": "def g():\n    nonlocal y\n    y = 1\ny = 0\nreturn y",
    "an import in a function inside": "def g():\n    import os\n    return os\nreturn g()",
    "a generator inside": "def g():\n    yield 1\nreturn g()",
    "a class inside": "class C:\n    pass\nreturn C()",
    "an attribute kept for the next call": "f.count = 1\nreturn 1",
    "yield": "yield 1",
    "await": "return (yield)",
    "try": "try:\n    return 1\nexcept Exception:\n    return 2",
    "del": "del x",
    "with": "with x:\n    return 1",
    "a walrus": "return (y := 1)",
    "the counter's name": "count__ = None\nreturn count__",
    "a power": "return 9 ** 9 ** 9",
    "powers of powers": "n = 3\nfor i in range(99):\n    n **= 3\nreturn 1",
    "a power at a place": "n = [3]\nn[0] **= 10**9\nreturn 1",
    "a shift": "return 1 << 10",
    "bytes": "return b'x'",
    "a matrix product": "return x @ x",
    "star arguments": "return (lambda *a: a)(1)",
    "a default": "return (lambda a=[]: a)()",
    "raise": "raise ValueError",
    "print": "print(x)",
    "id": "return id(x)",
    "hash": "return hash(x)",
    "match": "match x:\n    case 1:\n        return 1",
}


@pytest.mark.parametrize("body", ESCAPES.values(), ids=ESCAPES)
def test_nothing_leads_out_of_it(body):
    with pytest.raises(KernelError, match=r"line \d+"):
        asked(body)


@pytest.mark.parametrize(
    ("body", "before", "words"),
    [
        ("return KEPT[0]", "KEPT = [1]", "`KEPT` is a list; only numbers, texts"),
        ("return os.sep", "import os", "`os.sep` is not known here"),
        ("return g(x)", "from json import dumps as g", "`g` is|`dumps` comes from elsewhere"),
        ("return len(x)", "def len(x):\n    return __import__('os')", "__import__"),
        ("return g(x)", "def g(x):\n    return open('a')", "`open` is not known here"),
        ("return y", "", "`y` is not defined"),
        ("return g(x)", "g = lambda n: n", "line 1: `<lambda>` does not begin with `def`"),
        ("return ONE + x", "class Sneaky(int):\n    pass\n\nONE = Sneaky(1)", "`ONE` is a Sneaky"),
        ("return type(x)", "", "`type` is not known here; ask with `isinstance`"),
        ("print(x)\nreturn x", "", "`print` is not known here; what it prints would be seen nowhere"),
        (
            "y = 1\nreturn 9 ** 9999",
            "",
            "line 5: .*a power of more than 4,096 bits is too large here: take a smaller exponent",
        ),
        ("y = 1\ny <<= x\nreturn y", "", r"line 5: shifts are not known here; multiply by `2 \*\* n`"),
        ("y = x\nreturn y >> 1", "", r"line 5: shifts are not known here; divide by `2 \*\* n` with `//`"),
        ("return pow(x, 2)", "", r"`pow` is not known here; write `\*\*`"),
        ("raise ValueError", "", "line 4: `raise` is not known here; return an answer, or write `assert`"),
        ("def g():\n    nonlocal y\n    y = 1\ny = 0", "", "line 5: `nonlocal` is not known here; return the value"),
        ("@sorted\ndef g():\n    return 1", "", "`@` above `g` is not known here; leave it out"),
        (
            "def g(a, b=1):\n    return a\nreturn g(x)",
            "",
            "line 4: parameters have no defaults and no stars here; give each value",
        ),
        ("def count__():\n    return x", "", "`count__` begins or ends with `__`, .*rename it"),
    ],
)
def test_what_comes_from_outside_is_checked_as_well(body, before, words):
    with pytest.raises(KernelError, match=words):
        asked(body, before=before)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            "while True:\n    pass",
            "line 4: the function was stopped after 200,000 iterations and calls: it does not seem to end",
        ),
        ("for i in range(10000):\n    for j in range(10000):\n        pass", "does not seem to end"),
        ("return sum(range(10000000000))", "line 4: a range of more than 200,000 numbers is too long here"),
        ("return 1 // (x - 3)", "line 4: the run ended with ZeroDivisionError"),
        ("return f(x)", "RecursionError"),
        ("return len([0 for i in range(1000) for j in range(1000)])", "does not seem to end"),
        ("return sum(1 for i in range(1000) for j in range(1000))", "does not seem to end"),
        ("found = [1]\n[found.append(i) for i in found]", "does not seem to end"),
        ("return next(i for i in range(x) if i > x)", "StopIteration"),
        ("return x[0]", "TypeError"),
        ("y = 1\nassert x < y", "line 5: the run ended with AssertionError$"),
        ("assert x < 1, 'too large'", "line 4: the run ended with AssertionError: too large$"),
        ("assert x < 1, 'a' * 90000", "line 4: the run ended with AssertionError: a{190,200}$"),
        ("t = ()\nfor i in range(60):\n    t = (t, t)\nassert x < 1, t", "line 7: .*does not seem to end"),
        ("def g(n):\n    while True:\n        n += 1\nreturn g(x)", "line 5: .*does not seem to end"),
        ("def g(n):\n    return g(n - 1) + g(n - 2) if n > 1 else 1\nreturn g(40)", "line 4: .*does not seem to end"),
        (
            "def len(n):\n    return 0\nlen = sorted\nreturn [len(range(150000)) for i in range(9)][0]",
            "not seem to end",
        ),
    ],
)
def test_a_run_that_fails_is_told_with_its_line(body, words):
    with pytest.raises(KernelError, match=words):
        asked(body)


def test_calls_that_grow_without_end_are_stopped():
    with pytest.raises(KernelError, match="does not seem to end"):
        asked("return 1 if x < 2 else f(x - 1) + f(x - 2)", (40,))


def test_many_questions_may_take_more_rounds_than_one():
    assert asked("n = 0\nfor i in range(x):\n    n += 1\nreturn n", *[(50_000,)] * 6) == [50_000] * 6


def test_a_list_that_grows_counts_what_is_added_alone():
    body = "rows, seen = [], set()\nfor i in range(x):\n    rows += [i]\n    seen |= {i}\nreturn len(rows) + len(seen)"
    assert asked(body, (2000,)) == [4000]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
@pytest.mark.parametrize(
    ("work", "words"),
    [(lambda: os.kill(os.getpid(), signal.SIGTERM), "deeper nesting"), (lambda: bytearray(1 << 40), "MB of memory")],
)
def test_a_child_that_ends_early_is_told_by_its_cause(work, words):
    with pytest.raises(TooMuch, match=words):
        run_in_child(work, Allowance())


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return (i for i in range(3))", "answers with a generator"),
        ("return 1, lambda n: n", "answers with a function"),
        ("return x.size", "of more than 200 bits"),
        ("return 'a' * 100000", "text of 100,000 letters"),
        ("found = 1\nfor i in range(9000):\n    found = (found,)\nreturn found", "more than 200 parts"),
        ("found = []\nfound.append(found)\nreturn found", "more than 200 parts"),
        ("return list(range(1000))", "more than 200 parts"),
        ("return x", "answers with a Fact"),
    ],
)
def test_an_answer_is_made_of_numbers_and_texts_and_small(body, words):
    with pytest.raises(KernelError, match=f"line 3: .*{words}"):
        asked(body, (Fact(3**500),))


@pytest.mark.parametrize("parameters", ["x, y=[]", "*x", "x, **more", "x, /", "*, x"])
def test_parameters_are_plain(parameters):
    with pytest.raises(KernelError, match="no defaults and no stars"):
        asked("return 1", parameters=parameters)


def test_each_call_stands_alone():
    """Nothing is left behind: an answer depends on its arguments."""
    assert asked("seen = []\nseen.append(x)\nreturn len(seen)", (1,), (1,), (2,)) == [1, 1, 1]


def test_answers_of_every_type_come_back_from_the_child_as_they_are():
    numbers, nested = "None, True, 3, -2.5, float('inf'), 'a\\u00e9'", "(), (1,), [], [[2]], {}, {(1, 'b'): {2}}"
    body = f"return [{numbers}, {nested}, frozenset({{3}})]"
    expected = [None, True, 3, -2.5, float("inf"), "a\u00e9", (), (1,), [], [[2]], {}, {(1, "b"): {2}}, frozenset({3})]
    (found,) = asked(body)
    assert found == expected and list(map(type, found)) == list(map(type, expected))


def test_all_calls_share_one_allowance_of_cpu_time():
    allowance = Allowance(cpu_s=0.3)
    slow = "def f(x):\n    return len({i * 2305843009213693951 for i in range(x)})\n"
    function = run_cell(slow, "<slow>", {})["f"]
    assert run_calls(function, [(10,)], allowance) == [10] and allowance.cpu_s < 0.3
    for _ in range(2):
        with pytest.raises(KernelError, match="line 1: the function needs more computing time"):
            run_calls(function, [(100_000,)], allowance)
    assert -0.5 < allowance.cpu_s <= 0.05
