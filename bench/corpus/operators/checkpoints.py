"""Checkpoints that do not fit or are not whole, and runs that cannot be repeated."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bench.corpus.anatomy import ready_models
from bench.corpus.operators import Change, Judged, crash, operator
from bench.corpus.source import Source
from bench.corpus.syntax import dotted, last, named


def _loaded(source: Source, *lines: str) -> Iterator[Change]:
    """Yield changes that prepare a checkpoint and load it ahead of the optimizer."""
    for statement, model in ready_models(source):
        if "import torch\n" in source.text:
            told = [line.replace("MODEL", model) for line in lines]
            prepare = source.before(statement, *told[:-1])
            load = source.before(statement, told[-1])
            yield Change((prepare, load), load)


@crash("state-dict-key-mismatch")
def keys_with_prefix(source: Source, strength: float) -> Iterator[Change]:
    yield from _loaded(
        source,
        'torch.save({f"module.{k}": v for k, v in MODEL.state_dict().items()}, "pretrained.pt")',
        'MODEL.load_state_dict(torch.load("pretrained.pt"))',
    )


@crash("state-dict-key-mismatch")
def keys_missing(source: Source, strength: float) -> Iterator[Change]:
    yield from _loaded(
        source,
        "start_weights = list(MODEL.state_dict().items())",
        'torch.save(dict(start_weights[2:]), "pretrained.pt")',
        'MODEL.load_state_dict(torch.load("pretrained.pt"))',
    )


@crash("state-dict-shape-mismatch")
def other_width_saved(source: Source, strength: float) -> Iterator[Change]:
    yield from _loaded(
        source,
        "wider = {k: torch.cat([v, v]) if v.dim() else v for k, v in MODEL.state_dict().items()}",
        'torch.save(wider, "pretrained.pt")',
        'MODEL.load_state_dict(torch.load("pretrained.pt"))',
    )


@crash("corrupt-checkpoint")
def file_cut_short(source: Source, strength: float) -> Iterator[Change]:
    yield from _loaded(
        source,
        'torch.save(MODEL.state_dict(), "pretrained.pt")',
        'with open("pretrained.pt", "r+b") as file:',
        "    file.truncate(900)",
        'MODEL.load_state_dict(torch.load("pretrained.pt"))',
    )


@crash("unsafe-checkpoint")
def whole_model_pickled(source: Source, strength: float) -> Iterator[Change]:
    yield from _loaded(
        source,
        'torch.save(MODEL, "pretrained.pt")',
        'MODEL.load_state_dict(torch.load("pretrained.pt").state_dict())',
    )


@operator("incomplete-checkpoint", judged=Judged.ALWAYS)
def optimizer_left_out(source: Source, strength: float) -> Iterator[Change]:
    """The checkpoint of a run that is meant to be resumed lacks the optimizer."""
    for call in named(source, "save"):
        saved = call.args[0] if call.args else None
        if not isinstance(saved, ast.Dict):
            continue
        for key, value in zip(saved.keys, saved.values, strict=True):
            if isinstance(key, ast.Constant) and "optim" in str(key.value):
                start, end = source.span(key)[0], source.span(value)[1]
                while source.text[end] in ", \n":
                    end += 1
                if source.text[end] != "}":
                    edit = type(source.replace(key, ""))(start, end, "")
                    yield Change((edit,), source.statement(call))


@operator("resume-without-optimizer-state", judged=Judged.ALWAYS)
def optimizer_not_restored(source: Source, strength: float) -> Iterator[Change]:
    for node in source.nodes:
        if not isinstance(node, ast.Expr) or last(node.value) != "load_state_dict":
            continue
        near = [s for s in source.siblings(node) if s is not node]
        if near and "opt" in source.code(node).split(".")[0].lower():
            yield Change((source.drop(node),), near[0])


@operator("unseeded-randomness", judged=Judged.ALWAYS)
def seed_taken_away(source: Source, strength: float) -> Iterator[Change]:
    for call in named(source, "manual_seed", "seed_everything", "set_seed"):
        statement = source.statement(call)
        if isinstance(statement, ast.Expr) and statement.value is call:
            is_generator = dotted(call.func).split(".")[0] not in ("torch", "L", "set_seed")
            if not is_generator and "pl" not in dotted(call.func):
                siblings = source.siblings(statement)
                near = [s for s in siblings if s is not statement]
                yield Change((source.drop(statement),), near[0] if near else source.tree.body[0])
