"""Labels of language models: what masks them, and whether anything is left of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import (
    Answer,
    Choice,
    Items,
    Known,
    NeverEqual,
    Part,
    Result,
    Site,
    Value,
    constant,
    is_same,
    options_of,
    origins,
)
from traindx.analysis.program.training.kinds import names_of
from traindx.analysis.program.training.operations import operation_of
from traindx.analysis.program.training.phases import source_of
from traindx.analysis.program.training.text_markers import missing_markers

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Program, Story

IGNORED = -100
ENDS = re.compile(r"^(?:eos|end)(?:$|_(?:id|idx|index|token|tok))", re.IGNORECASE)
TOKENIZES = frozenset({"()", ".encode", ".encode_plus", ".batch_encode_plus", ".__call__",
                       ".apply_chat_template", ".pad"})  # fmt: skip
LABELS = "labels"
LOADS_MODEL = (".from_pretrained", ".from_config")
PADDED = ("max_length", True, "longest")
# collators that mask the pads, or set labels themselves
MASKING_COLLATORS = frozenset({"DataCollatorForLanguageModeling", "DataCollatorForWholeWordMask",
                               "DataCollatorForCompletionOnlyLM", "SFTTrainer"})  # fmt: skip
FILLS = frozenset({"full", "full_like"})
CHANGES = frozenset({".copy_", ".masked_scatter_", ".scatter_", ".index_put_", ".index_copy_",
                     ".masked_fill_", ".fill_", ".put_", ".append", ".extend"})  # fmt: skip


@dataclass(frozen=True, eq=False)
class Masking:
    """A place where labels are masked, and what is wrong with it."""

    at: ProgramEvent | Value
    says: str
    because: Value | ProgramEvent | None = None


def events_of(story: Story) -> Iterator[ProgramEvent]:
    """Yield what a story does, and what its loaders do for an example."""
    yield from story.events
    for example in story.execution.examples:
        yield from example.events


def emptied_labels(story: Story) -> Iterator[Masking]:
    """Yield where no label is left."""
    events = list(events_of(story))
    yield from _masked_by_padded_length(events)
    yield from _template_with_bos(events)
    yield from _never_filled(story, events)
    yield from _never_kept(events)
    yield from _marker_not_found(story, events)


def _marker_not_found(story: Story, events: list[ProgramEvent]) -> Iterator[Masking]:
    """A marker of the answer that is looked for in texts that are built with another one."""
    if not story.program.recall(_masks_labels):
        return
    for found in missing_markers(events):
        says = f"{found.marker.strip()!r} is looked for in a text that never holds it"
        yield Masking(found.at, says)


def _masks_labels(program: Program) -> bool:
    return any(story.recall(_ignores_some) for story in program.stories)


def _ignores_some(story: Story) -> bool:
    """Tell whether a story masks any label."""
    return any(map(_ignores, events_of(story)))


def _ignores(event: ProgramEvent) -> bool:
    """Tell whether labels are masked here."""
    given = (event.result, *event.args, *event.kwargs.values())
    options = (o for v in given if v is not None for w in (v, *v.inputs) for o in options_of(w))
    is_collator = event.name.endswith("DataCollatorForCompletionOnlyLM")
    return is_collator or any(constant(o) == IGNORED for o in options)


def padded_labels(program: Program) -> Iterator[Masking]:
    """Yield where tokens that a tokenizer has padded become labels, and nothing masks the pads."""
    events = [e for story in program.stories for e in events_of(story)]
    if any(e.name.rsplit(".", 1)[-1] in MASKING_COLLATORS for e in events):
        return
    for event in events:
        labels = _labels_given(event)
        made = None if labels is None else tokens_of(_row_of(labels))
        is_padded = made is not None and constant(made.kwargs["padding"]) in PADDED
        if labels is None or not is_padded or event.gradients is Answer.NO:
            continue
        if not any(_is_marked(other, labels, event) for other in events):
            yield Masking(event, "the pads are labels here", made)


def _labels_given(event: ProgramEvent) -> Value | None:
    """Return the labels that a row gets, or that a model is called with."""
    if event.act is EventForm.STORE:
        is_labels = event.name == "[]" and len(event.args) > 1 and constant(event.args[1]) == LABELS
        return event.args[0] if is_labels else None
    is_model = event.name == "()" and getattr(event.receiver, "maker", "").endswith(LOADS_MODEL)
    return event.kwargs.get(LABELS) if is_model else None


def _row_of(labels: Value) -> Value:
    """`[ids.copy() for ids in tokens]`: a row stands for all."""
    is_list = isinstance(labels, Items) and bool(labels.members)
    return labels.members[0] if isinstance(labels, Items) and is_list else labels


def _is_marked(event: ProgramEvent, labels: Value, given: ProgramEvent) -> bool:
    """Tell whether something is written into labels, or other labels are given in their place."""
    if event is given or event.node is given.node:
        return False
    is_written = event.act is EventForm.STORE or event.name in CHANGES
    again = _labels_given(event) if event.act is EventForm.STORE else None
    is_read_back = isinstance(event.receiver, Part) and event.receiver.key == LABELS
    own = (labels, _row_of(labels))
    is_own = any(event.receiver is v for v in own) and _labels_given(event) is None
    return is_written and (again is not None or is_read_back or is_own)


def padded_length(value: Value | None) -> Result | None:
    """Return the call of a tokenizer of whose padded tokens a value is the length."""
    sized: Value | None = None
    if isinstance(value, Result) and value.maker == "builtins.len" and value.args:
        sized = value.args[0]
    elif (
        isinstance(value, Result)
        and value.maker == ".size"
        and _first_number(value.args) in (1, -1)
    ):
        sized = value.receiver
    elif isinstance(value, Part) and value.key in (1, -1) and isinstance(value.of, Part):
        sized = value.of.of if value.of.key == "shape" else None
    made = tokens_of(sized)
    return (
        made if made is not None and constant(made.kwargs.get("padding")) == "max_length" else None
    )


def _first_number(args: tuple[Value, ...]) -> object:
    return constant(args[0]) if args else None


def tokens_of(value: Value | None) -> Result | None:
    """Return the call of a tokenizer that tokens, or a row of them, come from."""
    for _ in range(8):
        if isinstance(value, Result) and value.maker in TOKENIZES and "padding" in value.kwargs:
            return value
        if isinstance(value, Part):
            value = value.of
        elif isinstance(value, Result) and value.maker in ("builtins.next", "operator.getitem"):
            value = value.args[0]
        elif isinstance(value, Result) and value.maker in (
            ".clone",
            ".copy",
            ".tolist",
            ".squeeze",
        ):
            value = value.receiver
        elif isinstance(value, Result) and value.maker in ("builtins.list", "copy.deepcopy"):
            value = value.args[0] if value.args else None
        else:
            return None
    return None


def _masked_by_padded_length(events: list[ProgramEvent]) -> Iterator[Masking]:
    """`labels[:len(prompt_ids)] = -100`, the prompt padded to the length of the whole."""
    for event in events:
        if event.act is EventForm.STORE and event.name == "[]" and len(event.args) > 1:
            value, key = event.args[:2]
            prompt = _head_of_padded(key) if constant(value) == IGNORED else None
            whole = tokens_of(event.receiver)
            if prompt is not None and whole is not None and _is_as_long(prompt, whole):
                yield Masking(event, "everything up to the padded length is masked", prompt)
        for given in (event.result, *event.args, *event.kwargs.values()):
            prompt = None if given is None else _joined_after_padding(given)
            if prompt is not None:
                yield Masking(
                    event, "as many labels are masked as the padded prompt is long", prompt
                )


def _head_of_padded(key: Value) -> Result | None:
    keys = key.members if isinstance(key, Items) else [key]
    for part in keys:
        if isinstance(part, Result) and part.maker == "builtins.slice" and len(part.args) == 3:
            low, high, _ = part.args
            prompt = padded_length(high)
            if prompt is not None and isinstance(low, Known) and low.value in (None, 0):
                return prompt
    return None


def _joined_after_padding(value: Value) -> Result | None:
    """`[-100] * n + ids[n:]`, where `n` is the length of a padded prompt."""
    if not isinstance(value, Result) or value.maker != "operator.add" or len(value.args) != 2:
        return None
    masked, rest = value.args
    if not isinstance(masked, Result) or masked.maker != "operator.mul":
        return None
    lists = [v for v in masked.args if isinstance(v, Items)]
    is_ignored = bool(lists) and all(constant(v) == IGNORED for v in lists[0].members)
    prompt = next((p for v in masked.args if (p := padded_length(v)) is not None), None)
    whole = tokens_of(rest)
    is_empty = prompt is not None and whole is not None and _is_as_long(prompt, whole)
    return prompt if is_ignored and is_empty else None


def _is_as_long(prompt: Result, whole: Result) -> bool:
    """Tell whether two calls pad to, or cut at, the same length."""
    one, other = prompt.kwargs.get("max_length"), whole.kwargs.get("max_length")
    if prompt is whole:
        return True
    if one is None or other is None:
        return one is other
    return is_same(one, other)


def _template_with_bos(events: list[ProgramEvent]) -> Iterator[Masking]:
    """A template that begins with what every text begins with is looked for inside of texts."""
    ignores = any(constant(v) == IGNORED for e in events for v in (*e.args, *e.kwargs.values()))
    for event in events:
        if event.name != "operator.eq" or not ignores or not _is_search(event):
            continue
        for text, template in (event.args, event.args[::-1]):
            if _begin_alike(text, template):
                says = "the template starts with a BOS token, so it is found in no text"
                yield Masking(event, says)


def _is_search(event: ProgramEvent) -> bool:
    """Tell whether something is compared in a loop over positions."""
    run = event.loops[-1] if event.loops else None
    over = None if run is None or run.over is None else source_of(run.over)
    return isinstance(over, Result) and over.maker == "builtins.range" and len(event.args) == 2


def _begin_alike(text: Value, template: Value) -> bool:
    """Tell whether a tokenizer puts the same token in front of a text and of a template."""
    if not isinstance(text, Items) or not isinstance(template, Items):
        return False
    if not text.members or not template.members or text.is_whole or not template.is_whole:
        return False
    first = template.members[0]
    return isinstance(first, Known) and text.members[0] is first


def _never_filled(story: Story, events: list[ProgramEvent]) -> Iterator[Masking]:
    """Labels that are made of nothing but the ignore value, and are used as they are."""
    for event in events:
        made = event.result
        if not isinstance(made, Result) or made.site is not event.site or not _is_ignored(made):
            continue
        if not any(_is_target(e, made) for e in events):
            continue
        changes = (e for e in events if e.act is EventForm.STORE or e.name in CHANGES)
        touched = (e.receiver for e in changes if e.receiver is not None and e is not event)
        if not any(v is made for receiver in touched for v in origins(receiver, 12)):
            yield Masking(event, "every label is −100, and none is ever set")


def _never_kept(events: list[ProgramEvent]) -> Iterator[Masking]:
    """Labels of which a comparison that is never true would have kept some."""
    rows = [v for e in events for v in (e.result, *e.args, *e.kwargs.values()) if v is not None]
    masked = [row for row in rows if isinstance(row, Items) and _is_masked(row)]
    for event in events:
        if not isinstance(event.result, NeverEqual):
            continue
        if any(row.site is not None and _is_within(event, row.site) for row in masked):
            says = "the labels to keep are chosen by a comparison that is never true"
            yield Masking(event, says)


def _is_masked(row: Items) -> bool:
    return bool(row.members) and all(constant(v) == IGNORED for v in row.members)


def _is_within(event: ProgramEvent, site: Site) -> bool:
    """Tell whether something is made in the function that an event happens in."""
    is_same = site.module is event.module
    return is_same and site.module.function_of(site.node) is event.function


def _is_ignored(made: Result) -> bool:
    operation = operation_of(made)
    if operation is None or operation.name.rsplit(".", 1)[-1] not in FILLS:
        return False
    given = made.kwargs.get("fill_value") or (made.args[1] if len(made.args) > 1 else None)
    return constant(given) == IGNORED


def _is_target(event: ProgramEvent, labels: Value) -> bool:
    """Tell whether a tensor is the target of a loss, or the labels of a model, as it is."""
    if event.kwargs.get("labels") is labels:
        return not event.is_own
    last = event.name.rsplit(".", 1)[-1]
    target = event.argument("target", 1)
    return last == "cross_entropy" and target is labels


def untrained_ends(story: Story) -> Iterator[Masking]:
    """Yield where the end token is left out of the loss."""
    yield from _ends_masked(story)
    yield from _ends_ignored(story)
    yield from _ends_left_out(story)


def _ends_masked(story: Story) -> Iterator[Masking]:
    """Yield where the end token of an answer is masked, since it is the pad token as well."""
    events = list(events_of(story))
    for store in events:
        if store.act is not EventForm.STORE or store.name not in ("pad_token", "pad_token_id"):
            continue
        tokenizer = store.receiver
        if tokenizer is None or not _is_end(store.args[0], tokenizer):
            continue
        masking = next((e for e in events if _masks_pads(e, tokenizer, events)), None)
        if masking is not None and any(_appends_end(e, tokenizer) for e in events):
            yield Masking(masking, "labels are masked wherever the token is the pad token", store)


def _ends_ignored(story: Story) -> Iterator[Masking]:
    """Yield the losses that ignore the end token itself, by its name or by its id."""
    for event in events_of(story):
        operation = operation_of(event.result)
        if operation is None or operation.name not in ("cross_entropy", "nll_loss"):
            continue
        given = operation.argument("ignore_index")
        is_named = given is not None and any(map(ENDS.search, names_of(given)))
        if given is not None and (is_named or _is_any_end(given)):
            yield Masking(event, "the loss ignores the end token", given)


def _ends_left_out(story: Story) -> Iterator[Masking]:
    """Yield where labels are masked by the end token, which is put behind each answer."""
    if not story.recall(_ignores_some):
        return
    events = list(events_of(story))
    for event in events:
        is_test = event.name in ("operator.eq", "operator.ne") and len(event.args) == 2
        end = next((a for a in event.args if _is_any_end(a)), None) if is_test else None
        if end is None or not isinstance(end, Part):
            continue
        if not _chooses(event, end.of, events) and not _is_mask(event, events):
            continue
        if any(_appends_end(e, end.of) for e in events):
            yield Masking(event, "labels are masked wherever the token is the end token", end)


def _is_mask(test: ProgramEvent, events: Iterable[ProgramEvent]) -> bool:
    """Tell whether a test chooses what is set to the ignore value."""
    for event in events:
        given = (*event.args, *event.kwargs.values())
        if any(v is test.result for v in given) and any(constant(v) == IGNORED for v in given):
            return True
    return False


def _is_any_end(value: Value) -> bool:
    return isinstance(value, Part) and value.key == "eos_token_id"


def _is_end(value: Value, tokenizer: Value) -> bool:
    return any(
        isinstance(o, Part) and o.of is tokenizer and o.key in ("eos_token", "eos_token_id")
        for o in options_of(value)
    )


def _is_pad(value: Value, tokenizer: Value) -> bool:
    is_id = isinstance(value, Part) and value.of is tokenizer and value.key == "pad_token_id"
    is_end = isinstance(value, Part) and value.of is tokenizer and value.key == "eos_token_id"
    return is_id or is_end


def _appends_end(event: ProgramEvent, tokenizer: Value) -> bool:
    """Tell whether the end token is put behind a text or its tokens."""
    if event.act is EventForm.STORE or event.name in ("operator.eq", "operator.ne"):
        return False
    made = event.result if isinstance(event.result, Result) else None
    if event.name == ".append":
        return any(_is_end(a, tokenizer) for a in event.args)
    values: list[Value] = list(event.args) + ([made] if made is not None else [])
    return any(_ends_with_end(v, tokenizer) for a in values for v in origins(a, 40))


def _ends_with_end(value: Value, tokenizer: Value) -> bool:
    if not isinstance(value, Result) or value.maker not in ("operator.add", "str.format"):
        return False
    last = value.args[-1] if value.args else None
    if isinstance(last, Items) and last.members:
        last = last.members[-1]
    return last is not None and _is_end(last, tokenizer)


def _masks_pads(event: ProgramEvent, tokenizer: Value, events: Iterable[ProgramEvent]) -> bool:
    """Tell whether an event sets the labels of pad tokens to the ignore value."""
    if event.kwargs.get("ignore_index") is not None:
        return _is_pad(event.kwargs["ignore_index"], tokenizer)
    if event.name.endswith("DataCollatorForLanguageModeling"):
        is_own = event.argument("tokenizer", 0) is tokenizer
        return is_own and constant(event.argument("mlm", 1)) is False
    given = [*event.args, *event.kwargs.values()]
    if not any(constant(v) == IGNORED for v in given):
        return _chooses(event, tokenizer, events)
    return any(
        isinstance(v, Result) and v.maker == "operator.eq"
        and any(_is_pad(a, tokenizer) for a in v.args)
        for v in given
    )  # fmt: skip


def _chooses(event: ProgramEvent, tokenizer: Value, events: Iterable[ProgramEvent]) -> bool:
    """`-100 if token == tokenizer.pad_token_id else token`, in a list of labels."""
    is_test = event.name in ("operator.eq", "operator.ne") and any(
        _is_pad(a, tokenizer) for a in event.args
    )
    if not is_test:
        return False
    rows = (v for e in events for v in (e.result, *e.args) if isinstance(v, Items))
    inside = (m for row in rows for v in row.members for m in (v, *v.inputs))
    return any(
        isinstance(m, Choice) and any(constant(o) == IGNORED for o in m.options) for m in inside
    )
