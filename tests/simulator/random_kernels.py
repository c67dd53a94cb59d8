"""Random kernels as source text: nested control flow and arithmetic over every type, always inside bounds.

Some things are left out because numba has no one answer to compare with: integers that overflow (undefined in
LLVM once signed), variables that are a bool on one path and a float32 on another, whose products get a type
that depends on the order of numba's inference, and variables that change their type in the test of a `while`,
which Python's compiler writes twice, so that they have one type on entry and another on the way back. Variables
are not set to a bare literal either: numba leaves out branches on those, and the simulator types both sides.
"""

import random

ARRAYS = {"xb": "uint8", "xi": "int32", "xl": "int64", "xf": "float32", "xd": "float64"}
LENGTH = 16
VARIABLES = ("a", "b", "c", "d", "e")
STARTS = (
    "i", "i + 1", "i - 9", "i * 0.5", "int32(7)", "uint8(250)", "float32(1.5)", "float64(0.25)", "int64(i * i)",
    "uint32(40000)", "int8(100)", "float32(i)",
)  # fmt: skip
CASTS = ("int32", "int64", "uint8", "float32", "float64", "int16", "uint32")


class Writer:
    """Writes one random kernel body; `rng` chooses."""

    def __init__(self, rng):
        self.rng = rng
        self.lines = []
        self.loops = 0
        self.counters = 0

    def emit(self, depth, text):
        self.lines.append("    " * depth + text)

    def body(self):
        for name in VARIABLES:
            self.emit(1, f"{name} = {self.rng.choice(STARTS)}")
        for _ in range(self.rng.randint(2, 4)):
            self.statement(1)
        for column, name in enumerate(VARIABLES):
            self.emit(1, f"out[i, {column}] = {name}")
            self.emit(1, f"out[i, {column + len(VARIABLES)}] = {name} % 1009")
        return "\n".join(self.lines)

    # --- statements ---

    def statement(self, depth):
        kinds = ["assign"] * 4 + ["augment"] * 2 + ["store", "swap"]
        if depth < 4:
            kinds += ["if"] * 3 + ["for"] * 2 + ["while"]
        if depth > 1:
            kinds += ["return"]
        if self.loops:
            kinds += ["break", "continue"]
        getattr(self, "write_" + self.rng.choice(kinds))(depth)

    def block(self, depth):
        for _ in range(self.rng.randint(1, 3)):
            self.statement(depth)

    def write_assign(self, depth):
        value = self.value(2)
        fixed = not any(c.isalpha() for c in value)
        self.emit(depth, f"{self.variable()} = {value}{' * i' * fixed}")

    def write_augment(self, depth):
        self.emit(depth, f"{self.variable()} {self.rng.choice(('+=', '-=', '*='))} {self.value(1)}")

    def write_swap(self, depth):
        first, second = self.rng.sample(VARIABLES, 2)
        self.emit(depth, f"{first}, {second} = {second}, {first}")

    def write_store(self, depth):
        self.emit(depth, f"out[i, {2 * len(VARIABLES)}] {self.rng.choice(('=', '+='))} {self.value(1)}")

    def write_if(self, depth):
        self.emit(depth, f"if {self.condition(2)}:")
        self.block(depth + 1)
        if self.rng.random() < 0.3:
            self.emit(depth, f"elif {self.condition(1)}:")
            self.block(depth + 1)
        if self.rng.random() < 0.5:
            self.emit(depth, "else:")
            self.block(depth + 1)

    def write_for(self, depth):
        self.counters += 1
        bounds = self.rng.choice(
            (
                "3",
                f"{self.index()} % 4",
                f"{self.index()} % 3, 5",
                f"1, {self.index()} % 7, 2",
                f"4, {self.index()} % 4, -1",
                "i % 3",
            )
        )
        self.emit(depth, f"for k{self.counters} in range({bounds}):")
        self.inside_loop(depth + 1)

    def write_while(self, depth):
        self.counters += 1
        counter = f"n{self.counters}"
        self.emit(depth, f"{counter} = {self.rng.choice(('i - i', 'i % 3', 'int32(1)'))}")
        limit = self.rng.choice(("3", "i % 5", f"4 and {self.whole(1)} < {self.index()}"))
        self.emit(depth, f"while {counter} < {limit}:")
        self.emit(depth + 1, f"{counter} += {self.rng.choice(('1', '2', 'int32(1)'))}")
        self.inside_loop(depth + 1)

    def inside_loop(self, depth):
        self.loops += 1
        self.block(depth)
        self.loops -= 1

    def write_break(self, depth):
        self.leave(depth, "break")

    def write_continue(self, depth):
        self.leave(depth, "continue")

    def leave(self, depth, how):
        self.emit(depth, f"if {self.condition(1)}:")
        self.emit(depth + 1, how)

    def write_return(self, depth):
        self.emit(depth, f"out[i, 0] = {self.value(1)}")
        self.emit(depth, "return")

    # --- expressions ---

    def variable(self):
        return self.rng.choice(VARIABLES)

    def index(self):
        """A whole number that is not negative."""
        return self.rng.choice(("i", f"int64(xb[{self.place()}])", f"abs(xl[{self.place()}])", "(i + 3)"))

    def place(self):
        return self.rng.choice((f"i % {LENGTH}", f"(i * 7) % {LENGTH}", "3", f"xb[i % {LENGTH}] % {LENGTH}"))

    def atom(self):
        return self.rng.choice(
            (
                self.variable(), self.variable(), self.variable(), "i", "2", "0.5", "float32(0.5)", "-3", "int32(5)",
                "math.pi", f"{self.rng.choice(tuple(ARRAYS))}[{self.place()}]",
            )
        )  # fmt: skip

    def value(self, depth):
        if depth == 0:
            return self.atom()
        form = self.rng.randrange(10)
        a, b = self.value(depth - 1), self.value(depth - 1)
        if form < 4:
            return f"({a} {self.rng.choice('+-*')} {b})"
        if form == 4:
            return f"{self.rng.choice(('min', 'max'))}({a}, {b})"
        if form == 5:
            return f"({a} if {self.condition(0)} else {b})"
        if form == 6:
            return self.whole(depth)
        if form == 7:
            return self.rng.choice(
                (f"abs({a})", f"(-{a})", f"math.sqrt(abs({a}))", f"({a} / 4)", f"({a} % 7)", f"({a} ** 2)")
            )
        if form == 8:
            kind = self.rng.choice(CASTS)
            return f"{kind}(min(max({a}, {0 if kind.startswith('u') else -100}), 100))"
        return a

    def whole(self, depth):
        """Arithmetic of integers alone."""
        a = self.rng.choice((self.index(), f"xi[{self.place()}]", f"xl[{self.place()}]", f"xb[{self.place()}]", "i"))
        b = self.rng.choice((self.index(), f"xi[{self.place()}]", "5", "i"))
        return self.rng.choice(
            (
                f"({a} // ({b} % 5 + 1))", f"({a} % ({b} % 5 + 1))", f"({a} & {b})", f"({a} | {b})", f"({a} ^ {b})",
                f"(~{a})", f"({a} << ({b} & 7))", f"({a} >> ({b} & 7))", f"({a} // -3)", f"({a} % -3)",
            )
        )  # fmt: skip

    def condition(self, depth):
        if depth == 0 or self.rng.random() < 0.4:
            sign = self.rng.choice(("<", "<=", ">", ">=", "==", "!="))
            return f"{self.value(min(depth, 1))} {sign} {self.variable()}"
        form = self.rng.randrange(5)
        a, b = self.condition(depth - 1), self.condition(depth - 1)
        if form < 2:
            return f"({a} {('and', 'or')[form]} {b})"
        if form == 2:
            return f"not ({a})"
        if form == 3:
            return f"{self.atom()} < {self.variable()} <= {self.atom()}"
        return self.variable()


def random_body(seed):
    """The statements of a random kernel, in which `i` is the thread."""
    return Writer(random.Random(seed)).body()
