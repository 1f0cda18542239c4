"""Other forms of checkpoints that do not fit or are not whole, and runs that cannot be repeated."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bench.corpus.operators import Change, form
from bench.corpus.operators import checkpoints as first
from bench.corpus.sites import complete_models, without_effect
from bench.corpus.source import Source
from bench.corpus.syntax import dotted, last, named
from bench.corpus.writing import Site, Writing, forms, lines

LOAD = '<model>.load_state_dict(torch.load("pretrained.pt"))'
SAVE = 'torch.save(start_weights, "pretrained.pt")'


def _loading(*prepared: str, load: str = LOAD) -> Writing:
    """Write what makes a checkpoint; the line that loads it is the fault."""

    def write(source: Source, site: Site, strength: float) -> Change | None:
        if "import torch\n" not in source.text or site.anchor is None:
            return None
        if "start_weights" in source.text:
            return None
        filled = [line.replace("<model>", site.words["model"]) for line in (*prepared, load)]
        prepare = source.before(site.anchor, *filled[:-1])
        loaded = source.before(site.anchor, filled[-1])
        return Change((prepare, loaded), loaded)

    return write


WEIGHTS = "start_weights = <model>.state_dict()"
BY_NAME = "for key in list(start_weights):"
ONTO_CPU = 'torch.load("pretrained.pt", map_location="cpu")'


def _restoring(*prepared: str) -> Writing:
    """Write what makes a checkpoint, and load it in a function below the imports."""
    return lines(
        *prepared,
        'restore(<model>, "pretrained.pt")',
        top=("def restore(module, path):", "    module.load_state_dict(torch.load(path))"),
    )


forms(
    first.keys_with_prefix,
    complete_models,
    known={
        "wrapped-when-saved": _loading(
            "start_weights = torch.nn.Sequential(<model>).state_dict()", SAVE
        ),
        "renamed-in-a-loop": _loading(
            WEIGHTS,
            BY_NAME,
            '    start_weights["backbone." + key] = start_weights.pop(key)',
            SAVE,
        ),
    },
    new={
        "wrapped-when-loaded": _loading(
            WEIGHTS,
            SAVE,
            load='torch.nn.Sequential(<model>).load_state_dict(torch.load("pretrained.pt"))',
        ),
        "restored-in-a-function": _restoring(
            'start_weights = {"model." + k: v for k, v in <model>.state_dict().items()}', SAVE
        ),
    },
)
forms(
    first.keys_missing,
    complete_models,
    known={
        "one-deleted": _loading(WEIGHTS, "del start_weights[next(iter(start_weights))]", SAVE),
        "biases-only": _loading(
            'start_weights = {k: v for k, v in <model>.state_dict().items() if "bias" in k}', SAVE
        ),
    },
    new={
        "first-part-only": _loading(
            "start_weights = <model>.state_dict()",
            "start_weights.popitem()",
            SAVE,
            load=f"<model>.load_state_dict({ONTO_CPU}, strict=True)",
        ),
        "restored-in-a-function": _restoring(
            "start_weights = dict(list(<model>.state_dict().items())[1:])", SAVE
        ),
    },
)
forms(
    first.other_width_saved,
    complete_models,
    known={
        "half-the-rows": _loading(
            WEIGHTS,
            BY_NAME,
            "    if start_weights[key].dim():",
            "        start_weights[key] = start_weights[key][: len(start_weights[key]) // 2]",
            SAVE,
        ),
        "one-more-row": _loading(
            "start_weights = {",
            "    k: torch.cat([v, v[:1]]) if v.dim() else v",
            "    for k, v in <model>.state_dict().items()",
            "}",
            SAVE,
        ),
    },
    new={
        "restored-in-a-function": _restoring(
            WEIGHTS,
            BY_NAME,
            "    start_weights[key] = start_weights[key].unsqueeze(0).repeat_interleave(2, 0)",
            SAVE,
        ),
        "turned-flat": _loading(
            "start_weights = {k: v.repeat(3) if v.dim() == 1 else v"
            " for k, v in <model>.state_dict().items()}",
            SAVE,
            load=f"<model>.load_state_dict({ONTO_CPU}, strict=False)",
        ),
    },
)
SAVED = 'torch.save(<model>.state_dict(), "pretrained.pt")'
forms(
    first.file_cut_short,
    complete_models,
    known={
        "half-of-the-bytes": _loading(
            SAVED,
            'with open("pretrained.pt", "rb") as file:',
            "    start_weights = file.read()",
            'with open("pretrained.pt", "wb") as file:',
            "    file.write(start_weights[: len(start_weights) // 2])",
        ),
        "emptied": _loading(SAVED, 'open("pretrained.pt", "wb").close()'),
    },
    new={
        "page-of-an-error": _loading(
            'with open("pretrained.pt", "w") as file:',
            '    file.write("<html><title>404 Not Found</title></html>")',
        ),
        "restored-in-a-function": _restoring(
            SAVED, "with open('pretrained.pt', 'r+b') as file:", "    file.truncate(700)"
        ),
    },
)
forms(
    first.whole_model_pickled,
    complete_models,
    known={
        "among-other-things": _loading(
            'torch.save({"model": <model>, "epoch": 0}, "pretrained.pt")',
            load='<model>.load_state_dict(torch.load("pretrained.pt")["model"].state_dict())',
        ),
        "in-a-list": _loading(
            'torch.save([<model>], "pretrained.pt")',
            load='<model>.load_state_dict(torch.load("pretrained.pt")[0].state_dict())',
        ),
    },
    new={
        "restored-in-a-function": lines(
            'torch.save(<model>, "pretrained.pt")',
            "<model>.load_state_dict(pretrained().state_dict())",
            top=("def pretrained():", '    return torch.load("pretrained.pt", map_location="cpu")'),
        ),
        "layers-pickled": _loading(
            'torch.save(dict(<model>.named_children()), "pretrained.pt")',
            load='start_weights = torch.load("pretrained.pt")',
        ),
    },
)


def _saved_optimizers(source: Source) -> Iterator[tuple[ast.Call, ast.Constant, ast.expr]]:
    """Yield the entries of checkpoints that hold an optimizer: call, key and value."""
    for call in named(source, "save"):
        saved = call.args[0] if call.args else None
        if not isinstance(saved, ast.Dict):
            continue
        for key, value in zip(saved.keys, saved.values, strict=True):
            if isinstance(key, ast.Constant) and "optim" in str(key.value):
                yield call, key, value


def _saved_instead(source: Source, text: str) -> Iterator[Change]:
    for call, _, value in _saved_optimizers(source):
        if "state_dict" in source.code(value):
            owner = source.code(value).rpartition(".state_dict")[0]
            yield Change(
                (source.replace(value, text.replace("<optimizer>", owner)),), source.statement(call)
            )


@form(first.optimizer_left_out)
def nothing_in_its_place(source: Source, strength: float) -> Iterator[Change]:
    yield from _saved_instead(source, "None")


@form(first.optimizer_left_out)
def its_rate_only(source: Source, strength: float) -> Iterator[Change]:
    yield from _saved_instead(source, '<optimizer>.param_groups[0]["lr"]')


@form(first.optimizer_left_out, is_new=True)
def its_defaults_only(source: Source, strength: float) -> Iterator[Change]:
    yield from _saved_instead(source, "<optimizer>.defaults")


@form(first.optimizer_left_out, is_new=True)
def taken_out_of_the_table(source: Source, strength: float) -> Iterator[Change]:
    """The table is made in full and saved without the entry."""
    for call, key, _ in _saved_optimizers(source):
        saved = call.args[0]
        kept = f"{{k: v for k, v in {source.code(saved)}.items() if k != {source.code(key)}}}"
        yield Change((source.replace(saved, kept),), source.statement(call))


def _restored_optimizers(source: Source) -> Iterator[ast.stmt]:
    for node in source.nodes:
        if isinstance(node, ast.Expr) and last(node.value) == "load_state_dict":
            near = [s for s in source.siblings(node) if s is not node]
            if near and "opt" in source.code(node).split(".")[0].lower():
                yield node


without_effect(first.optimizer_not_restored, _restored_optimizers, "RESTORE_OPTIMIZER")


def _seeded(source: Source) -> Iterator[ast.stmt]:
    for call in named(source, "manual_seed", "seed_everything", "set_seed"):
        statement = source.statement(call)
        if isinstance(statement, ast.Expr) and statement.value is call:
            is_generator = dotted(call.func).split(".")[0] not in ("torch", "L", "set_seed")
            if not is_generator and "pl" not in dotted(call.func):
                yield statement


without_effect(
    first.seed_taken_away,
    _seeded,
    "REPEATABLE",
    known={"seed-from-the-clock": lines("torch.seed()")},
    new={"seed-of-another-generator": lines("torch.Generator().manual_seed(0)")},
)
