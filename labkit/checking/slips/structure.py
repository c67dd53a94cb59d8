"""What lines tell without a run: indices of an access, threads that leave early, names that nothing reads."""

import ast

from labkit.checking.slips.names import Names, pairs_of

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


def find_loops_of_index(function: ast.FunctionDef, line: int) -> set[int]:
    """Return the lines of the loops around a line that count an index in it."""
    loops = [n for n in ast.walk(function) if isinstance(n, ast.For) and n.lineno < line <= last_line(n)]
    here = [n for n in ast.walk(function) if isinstance(n, ast.Subscript) and n.lineno == line]
    used = {name for each in here for name in names_read(each.slice)}
    return {loop.lineno for loop in loops if used & {*names_read(loop.target)}}


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
    """Return the parameters and variables that nothing reads, and the arrays of which nothing loads an element."""
    return [*Names(function, ()).unused, *find_unread(function)]


def find_unread(function: ast.FunctionDef) -> list[str]:
    """Return the arrays that the function makes, to which it stores, and of which it loads nothing."""
    nodes = list(ast.walk(function))
    made = {
        name
        for line in nodes
        if isinstance(line, ast.Assign)
        for target, value in pairs_of(line)
        for name in names_read(target)
        if ast.unparse(value).startswith(("cuda.shared.array(", "cuda.local.array("))
    }
    used = [node for node in nodes if isinstance(node, ast.Name) and node.id in made]
    stored = [node.value for node in nodes if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)]
    named = [
        node for line in nodes if isinstance(line, ast.Assign) for target in line.targets for node in _tops(target)
    ]
    elsewhere = {node.id for node in used if node not in stored and node not in named}
    return sorted(made - elsewhere & made)


def _tops(target):
    return target.elts if isinstance(target, ast.Tuple) else [target]
