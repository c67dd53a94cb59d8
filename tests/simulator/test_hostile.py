"""Kernels that mean harm: each is refused in a sentence with its line, or stopped, and never reaches the host.

A line that must be named bears `#<`. A kernel without that mark may run, so long as it does nothing but compute.
Every kernel runs in a process of its own, with a limit on its memory and its time.
"""

import re
from textwrap import dedent, indent

import pytest
from isolated import Worker

N = 64


def body(text: str, before: str = "") -> str:
    """A kernel of these statements, in which `i` is the thread."""
    statements = indent(dedent(text).strip("\n"), "    ")
    return f"{dedent(before)}\n@cuda.jit\ndef kernel(x, y):\n    i = cuda.grid(1)\n{statements}\n"


# Kernels that want something from the host.
REACHING = {
    "imports": body("import os #<"),
    "imports by a function": body("y[i] = __import__('os').getpid() #<"),
    "imports from": body("from os import system #<"),
    "opens a file": body("open('/etc/passwd') #<"),
    "evaluates text": body("y[i] = eval('1 + 1') #<"),
    "executes text": body("exec('import os') #<"),
    "compiles text": body("compile('1', 'f', 'exec') #<"),
    "asks for globals": body("globals() #<"),
    "asks for locals": body("y[i] = len(locals()) #<"),
    "asks for vars": body("vars(x) #<"),
    "asks for input": body("y[i] = input() #<"),
    "breaks into a debugger": body("breakpoint() #<"),
    "exits": body("exit() #<"),
    "a class's parents": body("y[i] = ().__class__.__bases__[0].__subclasses__() #<"),
    "a class of a number": body("y[i] = (1).__class__ #<"),
    "a class of an array": body("y[i] = x.__class__.__mro__ #<"),
    "globals of a function": body(
        "y[i] = helper.__globals__['x'] #<", "@cuda.jit(device=True)\ndef helper(): return 1"
    ),
    "code of a function": body("y[i] = helper.py_func.__code__ #<", "@cuda.jit(device=True)\ndef helper(): return 1"),
    "a kernel's own attributes": body("y[i] = kernel.py_func #<"),
    "builtins of a module": body("y[i] = math.__builtins__ #<"),
    "a loader of a module": body("np.__loader__.load_module('os') #<"),
    "a library behind NumPy": body("np.ctypeslib.load_library('c', '/') #<"),
    "a module behind another": body("y[i] = tools.os.system('ls') #<", "import glob as tools"),
    "the modules of the interpreter": body("y[i] = tools.sys.modules #<", "import glob as tools"),
    "memory by its address": body("y[i] = x.ctypes.data #<"),
    "an array's file": body("x.tofile('/tmp/x') #<"),
    "an array from a file": body("y[i] = np.load('/tmp/x')[0] #<"),
    "getattr": body("y[i] = getattr(x, 'shape')[0] #<"),
    "getattr with made text": body("y[i] = getattr(x, '__cl' + 'ass__') #<"),
    "setattr": body("setattr(x, 'shape', (1,)) #<"),
    "an attribute is set": body("x.shape = (8, 8) #<"),
    "an attribute is deleted": body("del x.shape #<"),
    "type with three arguments": body("y[i] = type('T', (), {}) #<"),
    "super": body("y[i] = super() #<"),
    "a format of text": body("print('{0.__class__}'.format(x)) #<"),
    "a percent format": body("print('%s' % x) #<"),
    "an f-string": body("print(f'{x.__class__}') #<"),
    "text times a number": body("print('x' * 10**9) #<"),
    "text plus text": body("print('a' + N) #<", "N = 'b'"),
    "text as an index": body("y['a'] = 1 #<"),
    "text is joined": body("print(''.join(('a', 'b'))) #<"),
    "an ordinary function": body("y[i] = helper(x[i]) #<", "def helper(v): raise SystemExit"),
    "a method": body("y[i] = things.count(1) #<", "things = [1]"),
    "a list of the host": body("things.append(1) #<", "things = [1]"),
    "a dict of the host": body("y[i] = things['a'] #<", "things = {'a': 1}"),
    "an array of the host": body("table[i] = 1 #<", "table = np.zeros(64)"),
    "a lambda": body("f = lambda v: evil + v #<\ny[i] = f(x[i])"),
    "a default of a lambda": body("f = lambda v=evil.attribute: v #<\ny[i] = f()"),
    "a default of a nested function": body("def inner(v=evil): #<\n    return v\ny[i] = inner()"),
    "a decorated nested function": body("@evil\ndef inner(): #<\n    return 1\ny[i] = inner()"),
    "a list comprehension": body("y[i] = [v for v in ().__class__.__mro__][0] #<"),
    "a generator expression": body("y[i] = sum(v for v in x) #<"),
    "a walrus": body("y[i] = (v := evil) #<"),
    "a nested function": body("def inner(): return evil #<\ny[i] = inner()"),
    "a nested class": body("class Inner: pass #<"),
    "a try": body("try: #<\n    y[i] = 1\nexcept Exception as e:\n    y[i] = e.__traceback__.tb_frame"),
    "a with": body("with evil: #<\n    pass"),
    "an assert": body("assert evil #<"),
    "a raise": body("raise evil #<"),
    "a yield": body("yield evil #<"),
    "a star": body("print(*evil) #<"),
    "a double star": body("print(**evil) #<"),
    "a global statement": body("global np #<\nnp = 1"),
    "a nonlocal name": """
        def make():
            n = 1
            @cuda.jit
            def kernel(x, y):
                nonlocal n #<
                n = 2
            return kernel
        kernel = make()
    """,
    "a match": body("match x: #<\n    case evil(a=b):\n        pass"),
    "an annotation is not evaluated": body("v: evil(1) = x[i]\ny[i] = v"),
}

# Objects of the host that would run code of theirs if anything were asked of them.
EVIL = {
    "a value": body("y[i] = evil #<"),
    "an index": body("y[evil] = 1 #<"),
    "an operand": body("y[i] = x[i] + evil #<"),
    "an operand in place": body("v = x[i]\nv += evil #<"),
    "a comparison": body("y[i] = x[i] == evil #<"),
    "a condition": body("if evil: #<\n    y[i] = 1"),
    "a call": body("y[i] = evil(x[i]) #<"),
    "a method": body("y[i] = evil.method(x[i]) #<"),
    "an element": body("y[i] = evil[0] #<"),
    "a store": body("evil[0] = x[i] #<"),
    "an attribute": body("y[i] = evil.shape[0] #<"),
    "its py_func": body("y[i] = evil.py_func(1) #<"),
    "the bound of a loop": body("for k in range(evil): #<\n    y[i] = k"),
    "what a loop runs over": body("for v in evil: #<\n    y[i] = v"),
    "a length": body("y[i] = len(evil) #<"),
    "a cast": body("y[i] = float32(evil) #<"),
    "a math function": body("y[i] = math.sqrt(evil) #<"),
    "a minimum": body("y[i] = min(x[i], evil) #<"),
    "an absolute value": body("y[i] = abs(evil) #<"),
    "a shape": body("s = cuda.shared.array(evil, float32) #<"),
    "a dtype": body("s = cuda.shared.array(8, evil) #<"),
    "a number of axes": body("y[i] = cuda.grid(evil) #<"),
    "what is printed": body("print(evil) #<"),
    "an atomic": body("cuda.atomic.add(evil, 0, 1) #<"),
    "an atomic's value": body("cuda.atomic.add(y, 0, evil) #<"),
    "a function named as one of numba's": body("y[i] = helper(x[i]) #<", "class helper:\n    py_func = evil"),
    "a part of a tuple": body("y[i] = things[0] #<", "things = (evil, 1)"),
    "unpacked": body("a, b = evil #<"),
    "raised to a power": body("y[i] = x[i] ** evil #<"),
    "a choice": body("y[i] = x[i] if evil else x[0] #<"),
    "never named": body("y[i] = x[i]"),
    "a number that lies about its class": body("y[i] = N #<", "class Liar:\n    __class__ = int\nN = Liar()"),
    "an int with its own arithmetic": body(
        "y[i] = N + 1",
        """
        class Loud(int):
            def __add__(self, other): return evil.added
            def __le__(self, other): return evil.compared
            def __lt__(self, other): return evil.compared
            def __ge__(self, other): return evil.compared
            def __index__(self): return evil.index
            def __int__(self): return evil.int
            def __array__(self, *args, **kwargs): return evil.array
            def __repr__(self): return evil.repr
        N = Loud(3)
        """,
    ),
    "a float with its own arithmetic": body(
        "y[i] = N + 1",
        """
        class Loud(float):
            def __add__(self, other): return evil.added
            def __float__(self): return evil.float
            def __array__(self, *args, **kwargs): return evil.array
        N = Loud(3)
        """,
    ),
    "text whose repr is code": body(
        "print(N)",
        """
        class Code(str):
            def __repr__(self): return "w.chunk.launch.__class__"
        N = Code("text")
        """,
    ),
    "a tuple with its own iterator": body(
        "y[i] = N[0]",
        """
        class Loud(tuple):
            def __iter__(self): return evil.iterated
            def __getitem__(self, k): return evil.item
        N = Loud((1, 2))
        """,
    ),
    "a module that is none": body(
        "y[i] = N.pi #<",
        """
        from types import ModuleType
        class Fake(ModuleType):
            @property
            def __name__(self): return evil.named
            def __getattr__(self, name): return evil.attribute
        N = Fake("math")
        """,
    ),
    "an array with its own methods": body(
        "y[i] = N[0]",
        """
        class Loud(np.ndarray):
            def __getattribute__(self, name): return evil.attribute
            def __eq__(self, other): return evil.compared
        N = np.zeros(3).view(Loud)
        """,
    ),
    "a metaclass": body(
        "y[i] = N(1) #<",
        """
        class Meta(type):
            def __getattribute__(cls, name): return evil.attribute
            def __eq__(cls, other): return evil.compared
            def __hash__(cls): return evil.hashed
            def __subclasscheck__(cls, other): return evil.subclass
            def __instancecheck__(cls, other): return evil.instance
        class N(metaclass=Meta): pass
        """,
    ),
}

# Names that could meet those of the generated code.
NAMES = """w m0 m1 t1 l1 b1 r1 c1 K0 K1 v_x a_x np load store atomic split both union minus select choose cast truth
    lane_range minimum maximum view field Slice sync_warps D_float32 gone result self launch chunk yield_ __debug___
    __class__ __builtins__ __import__ print len type object exec eval""".split()

SHADOWING = {
    **{
        f"a variable named {name}": body(
            f"{name} = x[i]\nif {name} > 3:\n    {name} = {name} * float32(2)\ny[i] = {name}"
        )
        for name in NAMES
    },
    **{
        f"a device function named {name}": body(
            f"y[i] = {name}(x[i]) if x[i] > 0 else x[i]\nx[i] = x[0]",
            f"@cuda.jit(device=True)\ndef {name}(v):\n    s = cuda.local.array(2, float32)\n    s[0] = v\n"
            "    return s[0]",
        )
        for name in "load store split select cast w np K0 m0 launch".split()
    },
    **{
        f"a kernel named {name}": f"@cuda.jit\ndef {name}(x, y):\n    y[0] = x[0]\nkernel = {name}\n"
        for name in "load store split union w np K0 D_float32 lane_range exec".split()
    },
    **{
        f"an argument named {name}": f"@cuda.jit\ndef kernel({name}, y):\n    y[cuda.grid(1)] = {name}[0]\n"
        for name in "w m0 v_y a_y self cuda_ K0 np gone result".split()
    },
    "letters of other alphabets": body("größe = x[i]\nπ = größe\nﬁ = π\ny[i] = fi"),
    "text that looks like code": body("print('\\'); import os; (\\'', x[i])"),
    "text with the end of a line": body("print('a\\nimport os\\n', x[i])"),
    "text of a surrogate": body("print('\\ud800', x[i])"),
    "text with a null": body("print('\\0', x[i])"),
    "a dtype by a hostile name": body("s = cuda.shared.array(8, '__import__(\"os\")') #<"),
    "a keyword of another call": body("s = cuda.shared.array(shape=8, dtype=float32, __class__=1) #<"),
}

# Kernels that want all the memory or all the time.
GREEDY = {
    "a power of powers": body("y[i] = 10**10**8"),
    "a shift without end": body("y[i] = 1 << 10**9"),
    "shifts of shifts": body("y[i] = 1 << (1 << (1 << (1 << 62)))"),
    "a literal of many digits": body("y[i] = " + "9" * 4000 + " #<"),
    "a global of many digits": body("y[i] = N #<", "N = 1 << 100_000"),
    "a negative power": body("n = -(2**63)\ny[i] = i ** n"),
    "a great shared array": body("s = cuda.shared.array(1000000000, float32)\ns[0] = 1"),
    "a shared array whose size overflows": body("s = cuda.shared.array(N, float32)\ns[0, 0] = 1", "N = (2**32, 2**32)"),
    "a shared array of many dimensions": body(f"s = cuda.shared.array(({'65536, ' * 16}), float32)\ny[i] = s.size"),
    "a shape beyond 64 bits": body("s = cuda.shared.array(N, float32) #<", "N = 1 << 200"),
    "a negative shape": body("s = cuda.shared.array(N, float32) #<", "N = -5"),
    "a great local array": body("s = cuda.local.array(1000000000000, float32) #<\ns[0] = 1"),
    "a local array whose size overflows": body(
        "s = cuda.local.array(N, float32) #<\ns[0, 0] = 1", "N = (2**32, 2**32)"
    ),
    "many local arrays": body(
        "\n".join(f"s{k} = cuda.local.array(100_000, float32)\ns{k}[i] = i" for k in range(40)) + "\ny[i] = s0[i]"
    ),
    "a loop without end": body("k = 0\nwhile True: #<\n    k += 1"),
    "a loop with a pass": body("while 1: #<\n    pass"),
    "a loop that a store keeps up": body("while x[0] == x[0]: #<\n    y[i] += 1"),
    "a loop that goes back": body("k = 0\nwhile k < 10: #<\n    k += 1\n    k -= 1"),
    "a loop with a barrier": body("while True: #<\n    cuda.syncthreads()"),
    "a loop with an atomic": body("while cuda.atomic.add(y, 0, 1) >= 0: #<\n    pass"),
    "a loop that prints": body("k = 0\nwhile True: #<\n    print('again', k)\n    k += 1"),
    "a loop in a device function": body(
        "y[i] = helper(x[i])",
        "@cuda.jit(device=True)\ndef helper(v):\n    k = 0\n    while True:\n        k += 1\n    return v",
    ),
    "a spin that nothing ends": body("while cuda.atomic.cas(y, 0, 1, 2) != 5:\n    pass"),
    "a spin on a bare reload": body("while x[0] == 0:\n    pass"),
    "a range that hardly ends": body("for k in range(2**62): #<\n    y[i] = k"),
    "a range that counts down": body("for k in range(2**62, -(2**62), -1): #<\n    y[i] = k"),
    "a range by each lane": body("for k in range(i * 10**15 + 10**15): #<\n    y[i] = k"),
    "a range over all numbers": body("for k in range(-(2**63), 2**63 - 1): #<\n    y[i] = k"),
    "a step of nothing": body("s = i - i\nfor k in range(0, 10, s): #<\n    y[i] = k"),
    "a uniform step of nothing": body("s = x.size - 64\nfor k in range(0, 10, s): #<\n    y[i] = k"),
    "loops within loops": body(
        "".join(f"{'    ' * d}for k{d} in range(10**6): #<\n" for d in range(15)) + "    " * 15 + "y[i] = 1"
    ).replace("#<", ""),
    "a loop with a long body": body("k = 0\nwhile True: #<\n" + "    k = k * 3 + i\n" * 2000),
    "recursion": body("y[i] = f(i)", "@cuda.jit(device=True)\ndef f(n):\n    return f(n - 1) if n > 0 else 0 #<"),
    "mutual recursion": body(
        "y[i] = f(i)",
        """
        @cuda.jit(device=True)
        def f(n):
            return g(n)
        @cuda.jit(device=True)
        def g(n):
            return f(n) #<
        """,
    ),
    "recursion through other types": body(
        "y[i] = f((i,))", "@cuda.jit(device=True)\ndef f(t):\n    return f((t, t)) #<"
    ),
    "recursion of the kernel": body("kernel(x, y) #<"),
    "a launch of the kernel": body("kernel[1, 1](x, y) #<"),
    "a ladder of calls": body(
        "y[i] = f40(i)",
        "@cuda.jit(device=True)\ndef f0(n):\n    return n\n"
        + "".join(
            f"@cuda.jit(device=True)\ndef f{k}(n):\n    return f{k - 1}(n) + f{k - 1}(n)\n" for k in range(1, 41)
        ),
    ),
    "a ladder of calls of two types": body(
        "y[i] = f20(i)",
        "@cuda.jit(device=True)\ndef f0(n):\n    return n\n"
        + "".join(
            f"@cuda.jit(device=True)\ndef f{k}(n):\n    return f{k - 1}((n, 1))[0] + f{k - 1}((n, 1.0))[0]\n"
            for k in range(1, 21)
        ),
    ),
    "a deep expression": body(f"y[i] = {'(' * 150}i{' + 1)' * 150}"),
    "a long sum": body(f"y[i] = {' + '.join(['x[i]'] * 900)}"),
    "a long comparison": body(f"y[i] = {' < '.join(['x[i]'] * 900)}"),
    "a long and": body(f"y[i] = {' and '.join(['x[i] > 0'] * 900)}"),
    "deep signs": body(f"y[i] = {'-' * 190}i"),
    "deep choices": body("y[i] = " + "".join(f"{k} if i == {k} else " for k in range(80)) + "0"),
    "deep subscripts": body("y[i] = " + "y[int32(" * 60 + "i" + ")]" * 60),
    "deep branches": body("".join(f"{'    ' * d}if x[i] > {d}:\n" for d in range(60)) + "    " * 60 + "y[i] = 1\n"),
    "many returns": body("".join(f"if i == {k}:\n    return\n" for k in range(120)) + "y[i] = 1"),
    "a long chain of elif": body(
        "if i == 0:\n    y[i] = 0\n" + "".join(f"elif i == {k}:\n    y[i] = {k}\n" for k in range(1, 90))
    ),
    "deep loops": body("".join(f"{'    ' * d}for k{d} in range(1):\n" for d in range(19)) + "    " * 19 + "y[i] = 1"),
    "deep loops whose types do not settle": body(
        "a = b = c = d = 0\n"
        + "".join(f"{'    ' * d}for k{d} in range(1):\n" for d in range(16))
        + "    " * 16
        + "a, b, c, d = b * 1.0, a, d + a, c\ny[i] = a"
    ),
    "an enormous source": body("\n".join(f"v{k} = x[i] + {k}" for k in range(20_000)) + "\ny[i] = v19999"),
    "a long source": body("\n".join(f"v{k} = x[i] + {k}" for k in range(2000)) + "\ny[i] = v1999"),
    "a long source of one variable": body("k = i\n" + "k = k + i * k\n" * 3000 + "y[i] = k"),
    "a great tuple written out": body("y[i] = ((0,) * 250 * 250)[i] #<"),
    "a great number written out": body("y[i] = 9 ** 9 ** 9 ** 9"),
    "a deep constant": body(f"y[i] = {'(' * 150}1{' + 1)' * 150}"),
    "many constants that Python leaves": body(f"y[i] = 1 / 0{' + 1' * 900}"),
    "a great tuple": body("y[i] = N[5]", "N = tuple(range(200_000))"),
    "a deep tuple": body("y[i] = N[0]", "N = 1\nfor _ in range(5000):\n    N = (N,)"),
    "a tuple that doubles": body("t = (1, 2)\n" + "t = (t, t)\n" * 40 + "y[i] = t[0][0]"),
    "a long text printed": body("for k in range(1000):\n    print(N, k)", "N = 'x' * 1_000_000"),
    "a flood of prints": body("for k in range(100_000):\n    print(k)"),
}

LARGE = "arguments = np.zeros(1 << 22, np.float32), np.zeros(64, np.float32)"

# Launches that want too much, or kernels that are none.
LAUNCHES = {
    "two thousand million blocks": (body("y[0] = 1"), {"grid": 2**31 - 1}),
    "too many blocks": (body("y[0] = 1"), {"grid": 2**31}),
    "many blocks that wait for one another": (
        body("if i == 0:\n    cuda.atomic.exch(y, 0, 1)\nwhile cuda.atomic.add(y, 0, 0) == 0:\n    pass"),
        {"grid": 10**8, "block": 1},
    ),
    "many blocks with full shared memory": (
        body("s = cuda.shared.array(49152, np.int8)\ns[0] = 1\ny[0] = s[0]"),
        {"grid": 100_000, "block": 1},
    ),
    "dynamic shared memory without end": (body("y[0] = 1"), {"shared_bytes": 2**40}),
    "many steps inspected": (body("k = 0\nwhile k < 200_000:\n    k += 1\ny[i] = k"), {"inspect": (0, 0)}),
    "many variables inspected": (
        body("\n".join(f"v{k} = i + {k}" for k in range(2000)) + "\ny[i] = v0"),
        {"inspect": (0, 0)},
    ),
    "many accesses recorded": (
        body("for k in range(100_000):\n    y[i % 64] = x[i % 64]"),
        {"block": 1024},
    ),
    "scattered accesses without end": (
        body("k = i\nwhile True: #<\n    k = (k * 1103515245 + 12345) % 4194304\n    x[k] = k", LARGE),
        {"grid": 64, "block": 1024},
    ),
    "atomics on many elements": (
        body("for k in range(200):\n    y[i % 64] = cuda.atomic.add(x, (i * 200 + k) % x.size, 1)", LARGE),
        {"grid": 32, "block": 1024},
    ),
    "a lambda": ("kernel = lambda x, y: None #<", {}),
    "a lambda under a decorator": ("kernel = cuda.jit(lambda x, y: None) #<", {}),
    "a generator": ("@cuda.jit\ndef kernel(x, y):\n    yield 1 #<\n", {}),
    "an async function": ("@cuda.jit #<\nasync def kernel(x, y):\n    pass\n", {}),
    "a class": ("class kernel: pass", {}),
    "a callable object": ("class K:\n    def __call__(self, x, y): pass\nkernel = K()", {}),
    "a bound method": ("class K:\n    def run(self, x, y): pass\nkernel = K().run", {}),
    "an evil object": ("kernel = evil", {}),
    "a built-in": ("kernel = print", {}),
    "a default argument": ("@cuda.jit\ndef kernel(x, y, n=3):\n    y[0] = n\n".replace("@cuda.jit", ""), {}),
    "star arguments": ("def kernel(*x): #<\n    x[0][0] = 1\n", {}),
    "keyword arguments": ("def kernel(x, *, y): #<\n    y[0] = 1\n", {}),
    "a decorator of theirs": ("def keep(f): return f\n@keep\ndef kernel(x, y):\n    y[0] = 1\n", {}),
    "a function that was wrapped": (
        "import functools\ndef other(q): import os\n@functools.wraps(other)\ndef kernel(x, y):\n    y[0] = 1\n",
        {},
    ),
    "a function that wraps itself": ("def kernel(x, y):\n    y[0] = 1\nkernel.__wrapped__ = kernel\n", {}),
    "other code under the same text": (
        "def kernel(x, y):\n    y[0] = 1\ndef other(a, b):\n    a[0] = b[0]\nkernel.__code__ = other.__code__\n",
        {},
    ),
    "no text at all": ("scope = {}\nexec('def kernel(x, y):\\n    y[0] = 1', scope)\nkernel = scope['kernel']", {}),
    "text as an argument": (body("y[i] = x[i]", "arguments = 'abc', 'def'"), {}),
    "an array of objects": (body("y[i] = x[i]", "arguments = np.array([None] * 64), np.zeros(64)"), {}),
    "an array of dates": (body("y[i] = 1", "arguments = np.zeros(64, 'M8[s]'), np.zeros(64)"), {}),
    "an array of text": (body("y[i] = 1", "arguments = np.zeros(64, 'U8'), np.zeros(64)"), {}),
    "a huge number": (body("y[i] = x", "arguments = 1 << 100_000, np.zeros(64)"), {}),
    "an array without elements": (body("y[i] = x[i]", "arguments = np.zeros(0, np.float32), np.zeros(64)"), {}),
    "an array that repeats one element": (
        body("x[i] = i", "arguments = np.broadcast_to(np.zeros(1, np.float32), (1 << 40,)), np.zeros(64, np.float32)"),
        {},
    ),
}

ALL = {
    **{f"reaching: {name}": (text, {}) for name, text in REACHING.items()},
    **{f"evil: {name}": (text, {}) for name, text in EVIL.items()},
    **{f"names: {name}": (text, {}) for name, text in SHADOWING.items()},
    **{f"greedy: {name}": (text, {}) for name, text in GREEDY.items()},
    **{f"launches: {name}": given for name, given in LAUNCHES.items()},
}


def marked_lines(text):
    return {number for number, line in enumerate(dedent(text).strip("\n").split("\n"), 1) if "#<" in line}


@pytest.fixture(scope="module")
def worker():
    worker = Worker()
    yield worker
    worker.end()


@pytest.mark.sample(15)
@pytest.mark.parametrize("name", ALL)
def test_a_hostile_kernel_is_refused_or_stopped(name, worker):
    text, launch = ALL[name]
    result = worker.outcome(text, **launch)
    assert result["error"] in (None, "KernelError", "LaunchError"), result
    assert result["touched"] == [], "nothing was asked of an object of the host"
    lines = marked_lines(text)
    if lines:
        assert result["error"] == "KernelError", result
        assert result["line"] in lines, result
    if result["error"]:
        assert re.fullmatch(r"[^\n]{20,600}", result["message"]), "one sentence"
