"""Warp collectives: shuffles, votes, matches, masks of lanes, and `syncwarp`."""

from labkit.simulator import numba_types
from labkit.simulator.seam import types
from labkit.simulator.translator.variables import Variables
from labkit.simulator.values import Tuple, Value, describe

SHUFFLED_TYPES = (types.int32, types.int64, types.float32, types.float64)
MATCH_SIGNATURES = tuple(types.int32(types.int32, kind) for kind in SHUFFLED_TYPES)  # numba-cuda's signatures


class Collectives(Variables):
    """Functions that the lanes of a warp execute together."""

    def shuffle(self, node):
        third = {"shfl_sync": "source lane", "shfl_xor_sync": "lane mask"}.get(self.call_name(node), "delta")
        named, value, operand = self.collective_arguments(node, f"mask, value, {third}")
        if value.type not in SHUFFLED_TYPES:
            self.fail(
                node,
                f"`{self.written(node.func)}` moves int32, int64, float32 and float64, and "
                f"`{self.written(node.args[1])}` is {describe(value.type)}; convert it first, for instance with "
                "`int32(...)`",
            )
        self.check_whole(operand, node.args[2], f"the {third}", smallest=32)
        return self.temp(self.collective(node, "shuffle", named, value.code, operand.code), value.type)

    def vote(self, node):
        return self.vote_code(node, "vote", types.boolean)

    def ballot(self, node):
        return self.vote_code(node, "ballot", types.int32)

    def vote_code(self, node, function, result):
        named, predicate = self.collective_arguments(node, "mask, condition")
        if not isinstance(predicate.type, (types.Integer, types.Boolean)):
            self.fail(
                node.args[1],
                f"the condition of `{self.written(node.func)}` is true, false or a whole number, and "
                f"`{self.written(node.args[1])}` is {describe(predicate.type)}; write a comparison, such as `> 0`",
            )
        holds = predicate.code if predicate.type == types.boolean else f"truth({predicate.code})"
        return self.temp(self.collective(node, function, named, holds), result)

    def match_any(self, node):
        return self.match_code(node, "match_any", types.int32)

    def match_all(self, node):
        return self.match_code(node, "match_all", Tuple((types.int32, types.boolean)))

    def match_code(self, node, function, result):
        named, value = self.collective_arguments(node, "mask, value", smallest_mask=8)
        resolved = numba_types.resolve_overload(MATCH_SIGNATURES, (types.int32, value.type))
        if resolved is None:
            self.fail(node, f"`{self.written(node.func)}` compares numbers, not {describe(value.type)}")
        return self.temp(self.collective(node, function, named, self.converted(value, resolved[1][1])), result)

    def activemask(self, node):
        self.number_arguments(node, 0, "`cuda.activemask`")
        return self.temp(f"active_mask(w, {self.mask})", types.uint32)

    def lanemask_lt(self, node):
        self.number_arguments(node, 0, "`cuda.lanemask_lt`")
        return Value("(w.lane_bit - np.uint32(1))", types.uint32)

    def syncwarp(self, node):
        named = self.compile_time_value(0xFFFFFFFF, node)
        if node.args:
            (named,) = self.collective_arguments(node, "mask", smallest_mask=8)
        self.emit(self.together(node, "sync_warps", self.converted(named, types.uint32)))
        return Value("None", types.none)

    # --- arguments and code of all of them ---

    def call_name(self, node):
        return self.dotted(node.func).removeprefix("cuda.")

    def collective_arguments(self, node, signature, smallest_mask=32):
        """Return the values of the arguments, of which the first is the mask."""
        if len(node.args) != len(signature.split(", ")):
            self.fail(
                node,
                f"write `{self.written(node.func)}({signature})`: it takes {len(signature.split(', '))} arguments, not "
                f"{len(node.args)}",
            )
        values = [self.scalar(a, f"`{self.written(node.func)}`") for a in node.args]
        self.check_whole(values[0], node.args[0], "the mask", smallest_mask)
        return values

    def check_whole(self, value, node, what, smallest):
        if not isinstance(value.type, types.Integer) or value.type.bitwidth < smallest:
            self.fail(
                node,
                f"{what} is a whole number of 32 or 64 bits here, and `{self.written(node)}` is "
                f"{describe(value.type)}; convert it with `int32(...)`",
            )

    def collective(self, node, function, named, *values) -> str:
        """Return the code of a collective that exchanges values."""
        return self.together(node, function, repr(self.call_name(node)), self.converted(named, types.uint32), *values)

    def together(self, node, function, *arguments) -> str:
        """Return the code of a collective, at which lanes that run on their own must wait for one another."""
        common = ", ".join([str((node.lineno, node.col_offset)), str(self.mask), *arguments])
        at_once = f"{function}(w, {common})"
        if not self.program.blocking:
            return at_once
        self.wait_line(node)
        return f"((yield from meet(w, {function}, {common})) if w.is_lane else {at_once})"
