"""Programs rewritten so that they do the same: a rule's verdict may not change with the form.

    python -m bench.rewriting [--rules] [--corpus HALF]

Each transformation takes the files of a program and returns them in another form, or None where
there is nothing to rewrite. Layout and comments are lost on the way; they mean nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from bench.rewriting import extraction, loops, moves, names, spellings, statements
from traindx.examples import DOCUMENTS

Files = dict[str, str]
Rewrite = Callable[[ast.Module], bool]  # changes the tree; tells whether it changed anything

TREES: dict[str, Rewrite] = {
    "rename variables": names.rename,
    "alias imports": names.alias_imports,
    "keyword for positional": names.use_keywords,
    "settings in a data class": names.settings_in_class,
    "settings of the command line": names.settings_of_command_line,
    "type annotations": names.annotate,
    "move into a function": moves.into_function,
    "move into a method": moves.into_method,
    "move into a closure": moves.into_closure,
    "call through partial": moves.through_partial,
    "settings through partial": moves.settings_through_partial,
    "body of a loop in a function": extraction.loop_bodies,
    "inline a function": extraction.inlined_functions,
    "own trainer class": moves.into_trainer,
    "while for for": loops.while_for_for,
    "enumerate": loops.enumerated,
    "tqdm": loops.with_progress,
    "zip with a counter": loops.zipped,
    "early continue": loops.early_continue,
    "inverted condition": loops.inverted_condition,
    "loop for comprehension": loops.loop_for_comprehension,
    "comprehension for loop": loops.comprehension_for_loop,
    "with around loops": statements.inside_with,
    "try around loops": statements.inside_try,
    "prints and logging": statements.with_prints,
    "dead code": statements.with_dead_code,
    "walrus": statements.walrus,
    "inline a variable": statements.inlined,
    "method chaining": statements.chained,
    "name every argument": statements.named_arguments,
    "bound method in a variable": statements.bound_methods,
    "module for functional form": spellings.layers_for_functions,
    "functional for module form": spellings.functions_for_layers,
    "method for function": spellings.methods_for_functions,
    "operator for method": spellings.operators_for_methods,
    "method for operator": spellings.methods_for_operators,
}


def rewritten(files: Files, name: str) -> Files | None:
    """Return the files of a program after a transformation; None where it does not apply."""
    documents = {p: t for p, t in files.items() if p.endswith(DOCUMENTS)}
    sources = {p: t for p, t in files.items() if p not in documents}
    if name == "move into another file":
        moved = moves.into_other_file(sources)
        return None if moved is None else {**moved, **documents}
    changed = False
    result: Files = dict(documents)
    for path, text in sources.items():
        tree = _parsed(text)
        if tree is None:
            return None
        is_changed = path.endswith(".py") and TREES[name](tree)
        result[path] = ast.unparse(ast.fix_missing_locations(tree)) if is_changed else text
        changed = changed or is_changed
    return result if changed else None


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except SyntaxError:
        return None


NAMES = (*TREES, "move into another file")
