"""Settings that are taken without an error and read by nobody, since they have another name.

A configuration of Transformers keeps whatever it is given; a function with `**kwargs` swallows it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import (
    ClassValue,
    FunctionValue,
    Part,
    Result,
    Value,
    constant,
    origins,
)
from traindx.analysis.program.training.configuration import is_same_setting
from traindx.analysis.program.training.program import Story

_BERT = (
    "hidden_size num_hidden_layers num_attention_heads intermediate_size hidden_dropout_prob "
    "attention_probs_dropout_prob max_position_embeddings classifier_dropout"
)
_LLAMA = (
    "hidden_size num_hidden_layers num_attention_heads intermediate_size attention_dropout "
    "max_position_embeddings num_key_value_heads head_dim"
)
# the sizes and dropout rates of each family, its aliases included
FAMILIES: dict[str, str] = {
    "GPT2": "n_embd n_layer n_head n_inner n_positions resid_pdrop embd_pdrop attn_pdrop "
    "hidden_size num_hidden_layers num_attention_heads max_position_embeddings "
    "summary_first_dropout",
    "Bert": _BERT,
    "Roberta": _BERT,
    "Electra": f"{_BERT} embedding_size summary_last_dropout",
    "DistilBert": "dim n_layers n_heads hidden_dim hidden_size num_hidden_layers dropout "
    "num_attention_heads attention_dropout qa_dropout seq_classif_dropout "
    "max_position_embeddings",
    "ViT": "hidden_size num_hidden_layers num_attention_heads intermediate_size "
    "hidden_dropout_prob attention_probs_dropout_prob",
    "T5": "d_model d_ff d_kv num_layers num_decoder_layers num_heads dropout_rate hidden_size "
    "num_hidden_layers num_attention_heads classifier_dropout head_dim",
    "Bart": "d_model encoder_layers decoder_layers encoder_attention_heads dropout hidden_size "
    "decoder_attention_heads encoder_ffn_dim decoder_ffn_dim attention_dropout "
    "activation_dropout classifier_dropout encoder_layerdrop decoder_layerdrop "
    "max_position_embeddings num_attention_heads num_hidden_layers",
    "Llama": _LLAMA,
    "Mistral": _LLAMA,
    "Qwen2": _LLAMA,
    "OPT": "hidden_size num_hidden_layers num_attention_heads ffn_dim dropout attention_dropout "
    "layerdrop max_position_embeddings word_embed_proj_dim",
}
CHECKPOINTS = {"gpt2": "GPT2", "distilgpt2": "GPT2", "bert-": "Bert", "distilbert": "DistilBert",
               "roberta": "Roberta", "t5-": "T5", "facebook/bart": "Bart", "facebook/opt": "OPT",
               "google/vit": "ViT", "google/electra": "Electra"}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class IgnoredSetting:
    """A setting under a name that only configurations of other families have."""

    event: ProgramEvent
    name: str
    family: str


def ignored_settings(story: Story) -> Iterator[IgnoredSetting]:
    """Yield the sizes and dropout rates that a configuration keeps and its model never reads."""
    for event in story.events:
        is_store = event.act is EventForm.STORE
        made = event.receiver if is_store else event.result
        family = family_of(made)
        if family is None or made is None or (not is_store and made.site is not event.site):
            continue
        given: Mapping[str, object] = {event.name: None} if is_store else event.kwargs
        for name in (n for n in given if n in _foreign(family)):
            if not _is_read(story, made, name):
                yield IgnoredSetting(event, name, family)


def family_of(value: Value | None) -> str | None:
    """Return the family of a configuration of Transformers; None where it is not known."""
    if not isinstance(value, Result) or not value.maker.startswith("transformers."):
        return None
    kind = value.maker.removesuffix(".from_pretrained").rsplit(".", 1)[-1]
    if kind == "AutoConfig" and value.args:
        text = constant(value.args[0])
        names = (f for start, f in CHECKPOINTS.items() if str(text).startswith(start))
        return next(names, None)
    family = kind.removesuffix("Config")
    return family if kind.endswith("Config") and family in FAMILIES else None


@cache
def _foreign(family: str) -> frozenset[str]:
    """The names that other families have and this one has not."""
    every = {name for text in FAMILIES.values() for name in text.split()}
    return frozenset(every - set(FAMILIES[family].split()))


def _is_read(story: Story, configuration: Value, name: str) -> bool:
    """Tell whether the program itself reads a setting of a configuration."""
    return any(
        isinstance(value, Part) and value.key == name and value.of is configuration
        for event in story.events
        for given in (event.receiver, *event.args, *event.kwargs.values())
        if given is not None
        for value in origins(given, 20)
    )


@dataclass(frozen=True, slots=True, eq=False)
class SwallowedSetting:
    """A keyword that goes into a `**kwargs` which nobody reads, and the parameter it is for."""

    event: ProgramEvent
    name: str
    parameter: str


def swallowed_settings(story: Story) -> Iterator[SwallowedSetting]:
    """Yield the keywords that a function of the project takes and drops, and their own name."""
    for event in story.events:
        function = _called(event) if event.is_own and event.kwargs else None
        taken = None if function is None else function.args.kwarg
        if function is None or taken is None:
            continue
        spec = function.args
        known = [p.arg for p in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]
        swallowed = [n for n in event.kwargs if n not in known and n != "**"]
        if not swallowed or _reads_name(function, taken.arg):
            continue
        for name in swallowed:
            free = (p for p in known if p not in event.kwargs)
            meant = next((p for p in free if is_same_setting(name, p)), None)
            if meant is not None and not story.program.project.may_mention(name):
                yield SwallowedSetting(event, name, meant)


def _called(event: ProgramEvent) -> ast.FunctionDef | None:
    """The function that a call runs: of a class, the one that makes its objects."""
    callee = event.callee
    if isinstance(callee, ClassValue):
        bodies = (node for home in callee.lineage() for node in home.node.body)
        made = (n for n in bodies if isinstance(n, ast.FunctionDef) and n.name == "__init__")
        return next(made, None)
    node = callee.node if isinstance(callee, FunctionValue) else None
    return node if isinstance(node, ast.FunctionDef) else None


def _reads_name(function: ast.FunctionDef, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(function))
