"""Tokens that are added to a tokenizer, and the tables of models that have no row for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import (
    Items,
    Known,
    Part,
    Result,
    Table,
    Value,
    is_same,
    origins,
)
from traindx.analysis.program.training.facts.certainty import is_certain
from traindx.analysis.program.training.flow import inside
from traindx.analysis.program.training.layers import layer_kind, setting
from traindx.analysis.program.training.settings import constants_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

ADDS = frozenset({".add_tokens", ".add_special_tokens"})
RESIZES = frozenset({".resize_token_embeddings", ".set_input_embeddings", "setattr"})
# tokens that many tokenizers have from the beginning
COMMON = frozenset(
    {"[PAD]", "[CLS]", "[SEP]", "[MASK]", "[UNK]", "<pad>", "<s>", "</s>", "<unk>", "<mask>",
     "<|endoftext|>", "<bos>", "<eos>", "<|padding|>", "<|pad|>", "<sep>", "<cls>"}
)  # fmt: skip
# checkpoints whose tokenizers have the end of a text, and nothing to pad with
BARE = ("gpt2", "gpt-2", "dialogpt", "gpt-neo")
OWN = frozenset({"<|endoftext|>"})


@dataclass(frozen=True, eq=False)
class UnresizedTable:
    """Tokens that are added to a tokenizer, and a model that is made without rows for them."""

    added: ProgramEvent
    tokens: tuple[str, ...]
    model: Value


def unresized_tables(story: Story) -> Iterator[UnresizedTable]:
    """Yield the models that read the tokens of a grown tokenizer and keep their table."""
    if story.execution.gave_up or any(e.name in RESIZES for e in story.events):
        return
    for event in story.events:
        tokenizer = event.receiver
        if event.name not in ADDS or not _is_tokenizer(tokenizer) or tokenizer is None:
            continue
        tokens = _new_tokens(story, event, tokenizer)
        model = _table_of(story, tokenizer, event) if tokens else None
        if model is not None and _is_done(event, tokenizer) and not _is_handed(story, model):
            yield UnresizedTable(event, tuple(tokens), model)


def _is_tokenizer(value: Value | None) -> bool:
    return _is_loaded(value) or _is_built(value)


def _is_loaded(value: Value | None) -> bool:
    is_loaded = isinstance(value, Result) and value.maker.endswith(".from_pretrained")
    return is_loaded and isinstance(value, Result) and "Tokenizer" in value.maker


def _is_built(value: Value | None) -> bool:
    """Tell whether a tokenizer is made here, of a vocabulary that the program trains or reads."""
    maker = value.maker if isinstance(value, Result) and value.receiver is None else ""
    return maker.startswith("transformers.") and "Tokenizer" in maker.rsplit(".", 1)[-1]


def _checkpoint(value: Value) -> Value | None:
    if not isinstance(value, Result):
        return None
    given = value.args[0] if value.args else None
    return given or value.kwargs.get("pretrained_model_name_or_path")


def _checkpoint_name(story: Story, value: Value) -> str:
    """Return the name of a checkpoint on the hub; empty for a folder, which may hold any."""
    names = constants_of(story, _checkpoint(value))
    name = names[0] if len(names) == 1 and isinstance(names[0], str) else ""
    is_folder = name.startswith((".", "/", "~")) or name.count("/") > 1
    return "" if is_folder else name


def _new_tokens(story: Story, event: ProgramEvent, tokenizer: Value) -> list[str]:
    """Return the tokens that the tokenizer surely has not had before."""
    texts = [v.value for v in inside(_given(event)) if isinstance(v, Known)]
    new = [t for t in texts if isinstance(t, str)]
    if _is_built(tokenizer):
        return [t for t in new if t not in COMMON | _trained_tokens(story, tokenizer)]
    name = _checkpoint_name(story, tokenizer).lower()
    known = OWN if any(word in name for word in BARE) else COMMON
    return [t for t in new if t not in known] if name else []


def _trained_tokens(story: Story, tokenizer: Value) -> set[object]:
    """Return the tokens that a vocabulary is given when it is trained, or its tokenizer made."""
    trainers = (e for e in story.events if e.name.startswith("tokenizers.") and not e.is_own)
    given = [*tokenizer.inputs, *(v for e in trainers for v in e.kwargs.values())]
    return {v.value for g in given for v in inside(g) if isinstance(v, Known)}


def _given(event: ProgramEvent) -> Value:
    given = (*event.args[:1], *event.kwargs.values())
    plain = (Items, Table, Known)
    return next((g for g in given if isinstance(g, plain)), Known(None))


def _is_done(event: ProgramEvent, tokenizer: Value) -> bool:
    """Tell whether tokens are added for certain, or where the tokenizer is asked for its own."""
    asked = [g for g in event.guards if g.test is not None]
    is_asked = asked and all(any(v is tokenizer for v in origins(g.test)) for g in asked if g.test)
    return bool(is_asked) or is_certain(event)


def _table_of(story: Story, tokenizer: Value, added: ProgramEvent) -> Value | None:
    """Return a model of the same checkpoint, or made for the size without added tokens."""
    own = _checkpoint(tokenizer)
    for event in story.events:
        made = event.result
        if not isinstance(made, Result) or made.site is not event.site or event.is_own:
            continue
        root = made.maker.split(".", 1)[0]
        is_loaded = root == "transformers" and made.maker.endswith(".from_pretrained")
        is_model = any(w in made.maker for w in ("Model", "For", "LMHead"))
        given = _checkpoint(made)
        if is_loaded and is_model and _is_same_name(story, own, given):
            return made
        sized = made.kwargs.get("vocab_size") if made.maker.endswith("Config") else None
        rows = setting(made, "num_embeddings") if layer_kind(made) == "Embedding" else sized
        if isinstance(rows, Part) and rows.of is tokenizer and rows.key == "vocab_size":
            return made
        if rows is not None and _is_counted_before(story, rows, tokenizer, added):
            return made
    return None


def _is_counted_before(story: Story, rows: Value, tokenizer: Value, added: ProgramEvent) -> bool:
    """Tell whether a size is that of a tokenizer before tokens are added to it."""
    is_length = isinstance(rows, Result) and rows.maker == "builtins.len"
    counted = story.giver_of(rows) if is_length and rows.inputs[:1] == (tokenizer,) else None
    return counted is not None and counted.order < added.order


def _is_same_name(story: Story, own: Value | None, given: Value | None) -> bool:
    if own is None or given is None:
        return False
    names = constants_of(story, own)
    return is_same(own, given) or (bool(names) and names == constants_of(story, given))


def _is_handed(story: Story, model: Value) -> bool:
    """Tell whether a function out of sight gets the model and the tokenizer, and may resize it."""
    for event in story.handed_on(model):
        root = event.name.split(".", 1)[0]
        if root not in ("transformers", "peft", "trl", "accelerate", "") or "." not in event.name:
            return True
    return False
