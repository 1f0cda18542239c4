"""The places that several faults share: losses, models that stand complete, optimizers, calls."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping

from bench.corpus.anatomy import (
    loop_steps,
    model_calls,
    optimizers,
    ready_models,
    steps,
    updates,
)
from bench.corpus.operators import Rule
from bench.corpus.operators.optimisation_losses import all_losses
from bench.corpus.source import Source
from bench.corpus.syntax import targets
from bench.corpus.writing import Side, Site, Sites, Writing, forms, lines


def expressions(find: Callable[[Source], Iterable[ast.expr | None]]) -> Sites:
    """Return sites of one expression each."""

    def sites(source: Source) -> Iterator[Site]:
        for node in find(source):
            if node is not None:
                yield Site((node,))

    return sites


def predictions(*kinds: str) -> Sites:
    return expressions(lambda source: [x.prediction for x in all_losses(source, *kinds)])


def loss_targets(*kinds: str) -> Sites:
    return expressions(lambda source: [x.target for x in all_losses(source, *kinds)])


def loss_calls(*kinds: str) -> Sites:
    """Return the calls of losses, which know what they are given."""

    def sites(source: Source) -> Iterator[Site]:
        for loss in all_losses(source, *kinds):
            words = {"out": source.code(loss.prediction), "target": source.code(loss.target)}
            if "reduction" not in source.code(loss.call):
                yield Site((loss.call,), words=words)

    return sites


def complete_models(source: Source) -> Iterator[Site]:
    """Yield where a model stands complete, ahead of its optimizer."""
    for statement, model in ready_models(source):
        yield Site(anchor=statement, words={"model": model})


def behind_optimizers(source: Source) -> Iterator[Site]:
    """Yield the lines behind optimizers that have a name."""
    for optimizer in optimizers(source):
        if optimizer.name:
            rate = source.code(optimizer.rate) if optimizer.rate is not None else ""
            words = {"optimizer": optimizer.name, "model": optimizer.model, "rate": rate}
            yield Site(anchor=optimizer.statement, side=Side.AFTER, words=words)


def behind_losses(source: Source) -> Iterator[Site]:
    """Yield the lines behind the making of a loss, with the model that made it."""
    for step in loop_steps(source):
        if step.made is not None and len(targets(step.made)) == 1:
            yield Site(anchor=step.made, side=Side.AFTER, words=step_words(source, step.backward))


def step_words(source: Source, backward: ast.stmt) -> dict[str, str]:
    """Return the names that a training step knows: its loss, its model and its optimizer."""
    step = next(s for s in steps(source) if s.backward is backward)
    calls = model_calls(source, step)
    stepped = [owner for s, owner in updates(source) if s in step.block]
    models = [o.model for o in optimizers(source) if o.name in stepped and o.model]
    words = {"loss": step.loss, "optimizer": stepped[0] if stepped else ""}
    if calls and not source.code(calls[0].func).startswith("self"):
        words["called"] = source.code(calls[0].func)
    words["model"] = models[0] if models else ""
    if calls and isinstance(calls[0].args[0], ast.Name):
        words["input"] = calls[0].args[0].id
    return words


def model_inputs(source: Source) -> Iterator[Site]:
    """Yield what the first model of a step is given."""
    for step in steps(source):
        for call in model_calls(source, step)[:1]:
            yield Site((call.args[0],))


def sole_outputs(source: Source) -> Iterator[Site]:
    """Yield the one model call of a step whose result is a single value."""
    for step in steps(source):
        calls = model_calls(source, step)
        parent = source.parents[calls[0]] if len(calls) == 1 else None
        if parent is None or isinstance(parent, ast.Attribute):
            continue
        if not isinstance(parent, ast.Assign) or len(targets(parent)) == 1:
            yield Site((calls[0],))


def outer_loop(source: Source, node: ast.AST) -> ast.For | None:
    """Return the outermost loop around a node."""
    loop = source.around(node, ast.For)
    while loop is not None and isinstance(parent := source.around(loop, ast.For), ast.For):
        loop = parent
    return loop if isinstance(loop, ast.For) else None


# Statements that are there and do not happen


def unheeded(find: Callable[[Source], Iterable[ast.stmt]]) -> Sites:
    """Return the sites of calls that stand alone on one line."""

    def sites(source: Source) -> Iterator[Site]:
        for statement in find(source):
            if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
                continue
            call = source.code(statement)
            if "\n" not in call:
                words = {"call": call, "bare": source.code(statement.value.func)}
                words["owner"] = words["bare"].rpartition(".")[0]
                yield Site(anchor=statement, side=Side.INSTEAD, words=words)

    return sites


def without_effect(
    of: Rule, find: Callable[[Source], Iterable[ast.stmt]], flag: str, **more: Mapping[str, Writing]
) -> None:
    """Add the forms in which a call stands in the source and is not made."""
    known = {
        "named-not-called": lines("<bare>"),
        "behind-a-flag-that-is-off": lines(
            f"if {flag}:", "    <call>", top=(f"{flag} = False",), is_fault_here=True
        ),
        **more.get("known", {}),
    }
    new = {
        "in-a-helper-that-returns-early": lines(
            "when_enabled(lambda: <call>)",
            top=(
                "def when_enabled(action, enabled=False):",
                "    if not enabled:",
                "        return None",
                "    return action()",
            ),
            is_fault_here=True,
        ),
        "in-a-function-nobody-calls": lines("def later():", "    <call>"),
        **more.get("new", {}),
    }
    forms(of, unheeded(find), known=known, new=new)
