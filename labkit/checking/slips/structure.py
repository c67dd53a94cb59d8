"""What lines tell without a run: indices of an access, threads that leave early, names that nothing reads."""

import ast

from labkit.checking.slips.names import Names

LEAVES = ast.Return, ast.Continue
SHARED_CALLS = "cuda.shfl", "cuda.syncthreads", "cuda.syncwarp"  # which need all threads of a warp or block


def last_line(node):
    return getattr(node, "end_lineno", node.lineno)


def find_index_lines(function: ast.FunctionDef, line: int) -> set[int]:
    """Return the lines that decide which elements are accessed in a line, and whether they are."""
    around: dict[ast.stmt, tuple[ast.stmt, ...]] = {}
    todo = [(statement, ()) for statement in function.body]
    while todo:
        statement, outer = todo.pop()
        around[statement] = outer
        for name in ("body", "orelse"):
            todo += [(inner, (*outer, statement)) for inner in getattr(statement, name, ())]
    found = {each for each in around if each.lineno <= line <= last_line(each) and not hasattr(each, "body")}
    names = [
        name
        for each in found
        for part in ast.walk(each)
        if isinstance(part, ast.Subscript)
        for name in names_read(part.slice)
    ]
    leaving = [each for each in around if isinstance(each, ast.If) and isinstance(each.body[-1], LEAVES)]
    inner = [set(around[each]) for each in found]
    found |= {each for each in leaving if each.lineno < line and any(set(around[each]) <= outer for outer in inner)}
    for outer in [outer for each in found for outer in around[each]]:
        found.add(outer)
        names += names_read(
            outer.iter if isinstance(outer, ast.For) else outer.test if isinstance(outer, ast.If) else outer
        )
    done = set()
    while names:
        name = names.pop()
        for each in around:
            if (
                name not in done
                and isinstance(each, ast.Assign)
                and name in names_read(ast.Tuple(each.targets, ast.Load()))
            ):
                found.add(each)
                names += names_read(each.value)
        done.add(name)
    return {each.lineno for each in found}


def names_read(node) -> list[str]:
    return [each.id for each in ast.walk(node) if isinstance(each, ast.Name)]


def find_early_return(function: ast.FunctionDef) -> tuple[int, int] | None:
    """Return the lines of an early `return` and of the first shuffle or barrier after it; None if there is none."""
    returns = [node.lineno for node in ast.walk(function) if isinstance(node, ast.Return)]
    calls = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith(SHARED_CALLS)
    ]
    after = sorted(call.lineno for call in calls for line in returns[:1] if call.lineno > line)
    return (returns[0], after[0]) if after else None


def find_unused(function: ast.FunctionDef) -> list[str]:
    """Return the parameters and variables that nothing reads."""
    return Names(function, ()).unused
