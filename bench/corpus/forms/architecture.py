"""Other forms of layers that do not fit together, or are not there."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from bench.corpus.anatomy import forwards, layers, method, modules, optimizers
from bench.corpus.operators import Change, form, one
from bench.corpus.operators import architecture as first
from bench.corpus.sites import behind_optimizers, expressions
from bench.corpus.source import Edit, Source
from bench.corpus.syntax import dotted, keyword, last, named
from bench.corpus.writing import Side, Site, ahead, forms, function, inline, lines

Found = Callable[[Source], Iterator[ast.expr]]


def _widths_of(*names: str) -> Found:
    """Return a search for the first number of layers."""

    def find(source: Source) -> Iterator[ast.expr]:
        for call in layers(source, *names):
            if call.args and not isinstance(call.args[0], ast.Starred):
                yield call.args[0]

    return find


def _inputs_of_linear(source: Source) -> Iterator[ast.expr]:
    return (c.args[0] for c in layers(source, "Linear") if len(c.args) >= 2)


forms(
    first.linear_input_width_wrong,
    expressions(_inputs_of_linear),
    known={"one-less": inline("<x> - 1"), "a-line-ahead": ahead("<x> + 3", name="input_width")},
    new={
        "in-a-function": function("x * 2 + 1", "width_after"),
        "half": inline("(<x> + 1) // 2 + 1"),
    },
)
forms(
    first.recurrent_width_wrong,
    expressions(_widths_of("LSTM", "GRU", "RNN")),
    known={"twice": inline("2 * <x>"), "a-line-ahead": ahead("<x> + 1", name="input_width")},
    new={"in-a-function": function("x + 4", "width_of_input"), "one-less": inline("<x> - 1")},
)


def _axes(source: Source) -> Iterator[ast.expr]:
    for forward in forwards(source):
        for node in ast.walk(forward):
            if isinstance(node, ast.Call) and last(node) == "cat":
                axis = keyword(node, "dim") or (node.args[1] if len(node.args) > 1 else None)
                if isinstance(axis, ast.Constant) and axis.value in (1, 2):
                    yield axis


forms(
    first.concatenation_along_wrong_axis,
    expressions(_axes),
    known={
        "with-a-name": inline("JOINED_ALONG", "JOINED_ALONG = 0"),
        "less-itself": inline("<x> - <x>"),
    },
    new={"in-a-function": function("x // 4", "axis_of")},
)


@form(first.concatenation_along_wrong_axis, is_new=True)
def stacked_for_concatenated(source: Source, strength: float) -> Iterator[Change]:
    """`stack` makes an axis of its own: what follows does not fit."""
    for axis in _axes(source):
        call = source.around(axis, ast.Call)
        if isinstance(call, ast.Call) and dotted(call.func) == "torch.cat":
            yield one(source.replace(call.func, "torch.stack"))


def _flatten_calls(source: Source) -> Iterator[Site]:
    """Yield calls that flatten in forward, with what they flatten."""
    for forward in forwards(source):
        for node in ast.walk(forward):
            is_flat = isinstance(node, ast.Call) and last(node) == "flatten" and node.args
            if is_flat and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                is_torch = dotted(node.func.value) == "torch"
                kept = node.args[0] if is_torch else node.func.value
                yield Site((node,), words={"kept": source.code(kept)})


def _flatten_layers(source: Source) -> Iterator[ast.expr]:
    for call in layers(source, "Flatten"):
        parent = source.parents[call]
        if isinstance(parent, ast.Call) and last(parent) == "Sequential":
            yield call


forms(
    first.flatten_forgotten,
    _flatten_calls,
    known={
        "last-axis-only": inline("<kept>.flatten(-1)"),
        "all-but-one-axis": inline("<kept>.flatten(2)"),
    },
    new={
        "in-a-function": inline(
            "features_of(<kept>)", "def features_of(x):", "    return x.contiguous()"
        ),
        "squeezed": inline("<kept>.squeeze()"),
    },
)
forms(
    first.flatten_forgotten,
    expressions(_flatten_layers),
    known={"layer-for-the-last-axis": inline("nn.Flatten(-1)")},
    new={"layer-from-the-second-axis": inline("nn.Flatten(start_dim=2)")},
)
convolutions = expressions(_widths_of("Conv1d", "Conv2d", "ConvTranspose2d"))
forms(
    first.input_channels_wrong,
    convolutions,
    known={"one-more": inline("<x> + 1"), "a-line-ahead": ahead("<x> + 2", name="channels")},
    new={
        "in-a-function": function("x * 3", "channels_in"),
        "with-a-name": inline("CHANNELS_READ", "CHANNELS_READ = 7"),
    },
)


def _norm_widths(source: Source) -> Iterator[ast.expr]:
    return (c.args[-1] for c in layers(source, "BatchNorm1d", "BatchNorm2d", "GroupNorm") if c.args)


forms(
    first.norm_channels_wrong,
    expressions(_norm_widths),
    known={"half": inline("max(1, <x> // 2)"), "a-line-ahead": ahead("<x> * 2", name="channels")},
    new={"in-a-function": function("4 * x", "channels_of"), "halved-by-shift": inline("<x> << 1")},
)


def _channel_axes(source: Source) -> Iterator[Site]:
    is_about_images = any(named(source, "Conv2d", "ShapeNet")) or "images" in source.text
    for call in named(source, "unsqueeze") if is_about_images else []:
        if call.args and source.code(call.args[0]) in ("1", "0"):
            assert isinstance(call.func, ast.Attribute)
            yield Site((call,), words={"images": source.code(call.func.value)})


forms(
    first.channels_put_last,
    _channel_axes,
    known={
        "new-axis": inline("<images>[..., None]"),
        "viewed": inline("<images>.reshape(*<images>.shape, 1)"),
    },
    new={
        "moved": inline("<x>.movedim(1, -1)"),
        "in-a-function": inline(
            "as_images(<images>)", "def as_images(x):", "    return x.unsqueeze(x.dim())"
        ),
    },
)


def _class_counts(source: Source) -> Iterator[ast.expr]:
    """Yield the numbers of outputs that the first form changes."""
    found = [c for c in layers(source, "Linear") if len(c.args) >= 2]
    spots = {c.edits[0].start for c in first.one_class_too_few(source, 1.0)}
    return (c.args[1] for c in found if source.span(c.args[1])[0] in spots)


forms(
    first.one_class_too_few,
    expressions(_class_counts),
    known={
        "half": inline("max(1, <x> // 2)"),
        "a-line-ahead": ahead("<x> - 1", name="outputs"),
    },
    new={
        "in-a-function": function("x - 1", "highest_label"),
        "length-of-a-range": inline("len(range(1, <x>))"),
    },
)


def _single_outputs(source: Source) -> Iterator[ast.expr]:
    for call in layers(source, "Linear"):
        if len(call.args) >= 2 and source.code(call.args[1]) == "1":
            yield call.args[1]


forms(
    first.two_outputs_for_one_target,
    expressions(_single_outputs),
    known={
        "with-a-name": inline("OUTPUTS", "OUTPUTS = 2"),
        "a-line-ahead": ahead("<x> + 1", name="outputs"),
    },
    new={
        "in-a-function": function("2 * x", "outputs_for"),
        "mean-and-spread": inline('len(("mean", "spread"))'),
    },
)


def _tables(source: Source) -> Iterator[ast.expr]:
    for call in layers(source, "Embedding"):
        told = source.code(call.args[0]).lower() if call.args else ""
        if "vocab" in told or "token" in told:
            yield call.args[0]
    for call in named(source, "BertConfig", "GPT2Config", "DistilBertConfig"):
        size = keyword(call, "vocab_size")
        if size is not None:
            yield size


forms(
    first.embedding_rows_missing,
    expressions(_tables),
    known={
        "half": inline("<x> // 2"),
        "a-line-ahead": ahead("<x> - 3", name="rows"),
    },
    new={
        "in-a-function": function("x - 4", "without_special_tokens"),
        "capped": inline("min(<x>, 5)"),
    },
)


def _constructors(source: Source) -> Iterator[tuple[ast.ClassDef, ast.stmt, list[ast.stmt]]]:
    for klass in modules(source):
        init = method(klass, "__init__")
        for statement in init.body if init else []:
            if source.code(statement) == "super().__init__()" and init is not None:
                rest = [s for s in init.body if s is not statement]
                if rest:
                    yield klass, statement, rest


def _supers(source: Source) -> Iterator[Site]:
    for klass, statement, rest in _constructors(source):
        words = {"class": klass.name}
        yield Site((), statement, Side.INSTEAD, words, (), rest[0])


forms(
    first.super_init_taken_away,
    _supers,
    known={
        "named-not-called": lines("super().__init__"),
        "super-alone": lines("super(<class>, self)"),
    },
    new={"of-object": lines("object.__init__(self)")},
)


@form(first.super_init_taken_away, is_new=True)
def called_at_the_end(source: Source, strength: float) -> Iterator[Change]:
    """The layers are there before the module is."""
    for _, statement, rest in _constructors(source):
        if rest[0].lineno > statement.lineno:
            moved = source.after(rest[-1], "super().__init__()")
            yield Change((source.drop(statement), moved), rest[0])


def _made_layers(source: Source) -> Iterator[Site]:
    """Yield the lines behind the last layer of modules."""
    for klass in modules(source):
        init = method(klass, "__init__")
        made = [s for s in init.body if isinstance(s, ast.Assign)] if init else []
        if made and "nn.Linear" in source.text:
            yield Site(anchor=made[-1], side=Side.AFTER)


forms(
    first.layer_never_called,
    _made_layers,
    known={
        "head-left-over": lines("self.old_head = nn.Sequential(nn.Linear(64, 64), nn.ReLU())"),
        "parameter-left-over": lines("self.scale = nn.Parameter(torch.ones(256))"),
    },
    new={
        "list-left-over": lines(
            "self.branches = nn.ModuleList(nn.Linear(32, 32) for _ in range(2))"
        ),
        "registered-by-name": lines('self.add_module("projection", nn.Linear(64, 64))'),
    },
)


def _token_tables(source: Source) -> Iterator[ast.expr]:
    for call in layers(source, "Embedding"):
        told = source.code(call.args[0]).lower() if call.args else ""
        if ("vocab" in told or "token" in told) and ".weight = " not in source.text:
            yield call.args[0]


forms(
    first.vocabulary_far_too_large,
    expressions(_token_tables),
    known={
        "higher-of-two": inline("max(<x>, <s>)"),
        "with-a-name": inline("TABLE_ROWS", "TABLE_ROWS = <s>"),
    },
    new={
        "in-a-function": function("x + <s>", "rows_for"),
        "room-to-grow": ahead("<x> * 600", name="rows"),
    },
)


def _parameters(source: Source) -> Iterator[Site]:
    for optimizer in optimizers(source):
        given = optimizer.parameters
        if optimizer.model and isinstance(given, ast.Call):
            yield Site((given,), words={"model": optimizer.model})


forms(
    first.parameters_not_called,
    _parameters,
    known={
        "method-not-called": inline("<model>.parameters"),
        "modules-of-the-model": inline("<model>.modules()"),
    },
    new={
        "named-state": inline("<model>.state_dict()"),
        "list-of-the-model": inline("[<model>]"),
    },
)


def _made_criteria(source: Source) -> Iterator[ast.Call]:
    for node in source.nodes:
        made = node.value if isinstance(node, ast.Assign) else None
        is_plain = isinstance(made, ast.Call) and not made.args and not made.keywords
        if is_plain and isinstance(made, ast.Call) and last(made).endswith("Loss"):
            yield made


def _criteria(source: Source) -> Iterator[Site]:
    for call in _made_criteria(source):
        yield Site((call,), words={"class": dotted(call.func)})


forms(
    first.loss_class_called_with_tensors,
    _criteria,
    known={
        "behind-a-lambda": inline("lambda out, target: <class>(out, target)"),
        "in-a-function": inline(
            "criterion_of(<class>)", "def criterion_of(kind):", "    return kind"
        ),
    },
    new={
        "from-a-table": inline(
            'CRITERIA_BY_NAME["usual"]', 'CRITERIA_BY_NAME = {"usual": <class>}'
        ),
        "partly-applied": inline("functools.partial(<class>)"),
    },
)


def _rate_keywords(source: Source) -> Iterator[tuple[ast.Call, ast.keyword]]:
    for call in named(source, "SGD", "AdamW", "Adam"):
        for given in call.keywords:
            if given.arg == "lr":
                yield call, given


def _keyword_written(text: str) -> Callable[[Source, float], Iterator[Change]]:
    def rule(source: Source, strength: float) -> Iterator[Change]:
        for _, given in _rate_keywords(source):
            start, end = source.span(given)
            rate = source.code(given.value)
            yield one(Edit(start, end, text.replace("<rate>", rate)))

    return rule


@form(first.keyword_that_does_not_exist)
def keyword_misspelt(source: Source, strength: float) -> Iterator[Change]:
    yield from _keyword_written("lrate=<rate>")(source, strength)


@form(first.keyword_that_does_not_exist, is_new=True)
def keywords_from_a_table(source: Source, strength: float) -> Iterator[Change]:
    yield from _keyword_written('**{"alpha": <rate>}')(source, strength)


forms(
    first.keyword_that_does_not_exist,
    behind_optimizers,
    new={
        "argument-of-a-method": lines("<optimizer>.zero_grad(set_to_zero=True)"),
        "method-that-does-not-exist": lines("<optimizer>.clear_gradients()"),
    },
)
