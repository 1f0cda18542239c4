"""Other forms of validation that does not tell the truth."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bench.corpus.anatomy import (
    evaluations,
    loop_steps,
    mode_calls,
    other_loaders,
    training_loaders,
)
from bench.corpus.operators import Change, form, many, one
from bench.corpus.operators import generalisation as first
from bench.corpus.sites import expressions
from bench.corpus.source import Source
from bench.corpus.syntax import argument, dotted, keyword, last, named, names_in
from bench.corpus.writing import Site, Sites, ahead, forms, function, inline, lines

# Modes


def _train_calls(source: Source) -> list[ast.Expr]:
    """Return the calls that turn training on, where the mode matters."""
    found = mode_calls(source, "train")
    is_used = mode_calls(source, "eval") and first.is_mode_dependent(source)
    return found if is_used and loop_steps(source) else []


def _all_written(source: Source, found: list[ast.Expr], text: str, *top: str) -> Iterator[Change]:
    """Write one text instead of all these calls; `<owner>` is whose they are."""
    if not found:
        return
    edits = []
    for statement in found:
        call = statement.value
        assert isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
        owner = source.code(call.func.value)
        new = text.replace("<owner>", owner).replace("<call>", source.code(statement))
        edits.append(source.replace(statement, new.replace("\n", f"\n{source.indent(statement)}")))
    above = [source.at_top("", *top)] if top else []
    yield many(*edits, *above)


@form(first.train_mode_taken_away)
def train_with_false(source: Source, strength: float) -> Iterator[Change]:
    yield from _all_written(source, _train_calls(source), "<owner>.train(False)")


@form(first.train_mode_taken_away)
def layers_set_one_by_one(source: Source, strength: float) -> Iterator[Change]:
    text = "for module in <owner>.modules():\n    module.training = False"
    yield from _all_written(source, _train_calls(source), text)


@form(first.train_mode_taken_away, is_new=True)
def mode_from_a_setting(source: Source, strength: float) -> Iterator[Change]:
    top = ("TRAINING = False",)
    yield from _all_written(source, _train_calls(source), "<owner>.train(TRAINING)", *top)


@form(first.train_mode_taken_away, is_new=True)
def set_in_a_function(source: Source, strength: float) -> Iterator[Change]:
    top = ("def ready(module):", "    return module.train().eval()")
    yield from _all_written(source, _train_calls(source), "ready(<owner>)", *top)


def _eval_calls(source: Source) -> list[ast.Expr]:
    found = mode_calls(source, "eval")
    return found if first.is_mode_dependent(source) and evaluations(source) else []


@form(first.eval_mode_taken_away)
def eval_named_not_called(source: Source, strength: float) -> Iterator[Change]:
    yield from _all_written(source, _eval_calls(source), "<owner>.eval")


@form(first.eval_mode_taken_away)
def trained_while_evaluated(source: Source, strength: float) -> Iterator[Change]:
    yield from _all_written(source, _eval_calls(source), "<owner>.train()")


@form(first.eval_mode_taken_away, is_new=True)
def mode_given_the_wrong_way_round(source: Source, strength: float) -> Iterator[Change]:
    top = ("def set_mode(module, is_evaluating):", "    module.train(is_evaluating)")
    yield from _all_written(source, _eval_calls(source), "set_mode(<owner>, True)", *top)


@form(first.eval_mode_taken_away, is_new=True)
def on_a_copy(source: Source, strength: float) -> Iterator[Change]:
    text = "evaluated = __import__('copy').deepcopy(<owner>).eval()"
    yield from _all_written(source, _eval_calls(source), text)


# What is validated on


def _pairs(source: Source) -> Iterator[tuple[ast.expr, ast.expr, ast.Call]]:
    """Yield the training set, and the validation set that could be taken for it."""
    train = [argument(c, 0, "dataset") for c in training_loaders(source)]
    mine = train[0] if train else None
    for call in other_loaders(source):
        given = argument(call, 0, "dataset")
        if given is None or mine is None:
            continue
        if source.scope(call) is source.scope(mine) or dotted(mine).startswith("self."):
            yield mine, given, call
    for call in named(source, "Trainer"):
        good, bad = keyword(call, "train_dataset"), keyword(call, "eval_dataset")
        if good is not None and bad is not None:
            yield good, bad, call


def _validation_sets(source: Source) -> Iterator[Site]:
    for mine, given, _ in _pairs(source):
        if "\n" not in source.code(mine):
            yield Site((given,), words={"train": source.code(mine)})


forms(
    first.validation_reads_training_set,
    _validation_sets,
    known={
        "a-line-ahead": ahead("<train>", name="held_back"),
        "part-of-it": inline(
            "torch.utils.data.Subset(<train>, range(min(len(<train>), len(<x>))))"
        ),
    },
    new={
        "chosen-in-a-function": inline(
            "to_validate(<train>, <x>)", "def to_validate(train, held):", "    return train or held"
        ),
        "joined-with-nothing": inline("torch.utils.data.ConcatDataset([<train>])"),
    },
)


def _evaluated_loaders(source: Source) -> Iterator[Site]:
    """Yield what evaluations are given, where the first form finds a training loader for it."""
    for change in first.evaluation_given_training_loader(source, 1.0):
        edit = change.edits[0]
        for node in source.nodes:
            if isinstance(node, ast.expr) and source.span(node) == (edit.start, edit.end):
                yield Site((node,), words={"train": edit.text})
                break


forms(
    first.evaluation_given_training_loader,
    _evaluated_loaders,
    known={
        "a-line-ahead": ahead("<train>", name="batches_to_judge"),
        "first-of-both": inline("(<train>, <x>)[0]"),
    },
    new={
        "chosen-in-a-function": inline(
            "batches_for(<x>, <train>)", "def batches_for(held, train):", "    return train or held"
        )
    },
)


def _training_sets(source: Source) -> Iterator[Site]:
    """Yield the training sets that the first form joins with validation."""
    if "import torch\n" not in source.text:
        return
    for call in training_loaders(source):
        mine = argument(call, 0, "dataset")
        for other in other_loaders(source):
            theirs = argument(other, 0, "dataset")
            if mine is None or theirs is None or source.scope(call) is not source.scope(other):
                continue
            is_same = names_in(theirs) & names_in(mine) and isinstance(mine, ast.Name)
            if not is_same and "\n" not in source.code(theirs):
                yield Site((mine,), words={"held": source.code(theirs)})


forms(
    first.validation_added_to_training,
    _training_sets,
    known={
        "added": inline("<x> + <held>"),
        "a-line-ahead": ahead("torch.utils.data.ConcatDataset((<x>, <held>))", name="all_examples"),
    },
    new={
        "in-a-function": inline(
            "everything(<x>, <held>)",
            "def everything(*parts):",
            "    return torch.utils.data.ConcatDataset(list(parts))",
        ),
        "as-a-list-of-examples": inline("[*(<x>), *(<held>)]"),
    },
)


def _tables(source: Source) -> Iterator[Site]:
    """Yield the lines ahead of a split of inputs and labels."""
    for node in source.nodes:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        if last(node.value) == "train_test_split" and len(node.value.args) >= 2:
            x, y = source.code(node.value.args[0]), source.code(node.value.args[1])
            if x.isidentifier() and y.isidentifier():
                yield Site(anchor=node, words={"inputs": x, "labels": y})


forms(
    first.target_among_features,
    _tables,
    known={
        "last-column": lines("<inputs>[:, -1] = <labels>"),
        "copied": lines("<inputs> = <inputs>.copy()", "<inputs>[:, 1] = <labels>"),
    },
    new={
        "added-to-a-column": lines("<inputs>[:, 0] = <inputs>[:, 0] * 0 + <labels>"),
        "in-a-function": lines(
            "<inputs> = with_history(<inputs>, <labels>)",
            top=(
                "def with_history(table, outcome):",
                "    table = table.copy()",
                "    table[:, 0] = outcome",
                "    return table",
            ),
        ),
    },
)

# Empty validation


def _other_sizes(source: Source) -> Iterator[ast.expr]:
    for call in other_loaders(source):
        size = keyword(call, "batch_size")
        if size is not None and keyword(call, "drop_last") is None:
            yield size


def _other_sets(source: Source) -> Iterator[ast.expr | None]:
    return (argument(c, 0, "dataset") for c in other_loaders(source))


@form(first.last_batch_dropped)
def many_times_the_size(source: Source, strength: float) -> Iterator[Change]:
    for size in _other_sizes(source):
        yield one(source.wrap(size, "1000 * (", "), drop_last=True"))


@form(first.last_batch_dropped)
def size_as_a_power(source: Source, strength: float) -> Iterator[Change]:
    for size in _other_sizes(source):
        yield one(source.replace(size, "2**16, drop_last=(1 == 1)"))


forms(
    first.last_batch_dropped,
    expressions(_other_sets),
    new={
        "subset-of-nothing": inline("torch.utils.data.Subset(<x>, [])"),
        "subset-from-the-end": inline("torch.utils.data.Subset(<x>, range(len(<x>), len(<x>)))"),
    },
)


def _starts(source: Source) -> Iterator[Site]:
    """Yield the starts of slices that the first form moves, all together."""
    for change in first.slice_beyond_the_end(source, 1.0):
        spots = {(e.start, e.end) for e in change.edits}
        found = [n for n in source.nodes if isinstance(n, ast.expr) and source.span(n) in spots]
        chosen = {source.span(n): n for n in found}
        yield Site(tuple(chosen.values()))


forms(
    first.slice_beyond_the_end,
    _starts,
    known={"thousandfold": inline("1000 * <x>"), "power-for-product": inline("<x> ** 3")},
    new={
        "in-a-function": function("x + 10**6", "start_of_validation"),
        "with-a-name": inline("START", "START = 10_000_000"),
    },
)

# Validation that is prepared otherwise


def _evaluated(*kinds: type) -> Sites:
    def sites(source: Source) -> Iterator[Site]:
        for call in evaluations(source):
            if isinstance(call.args[0], kinds):
                yield Site((call.args[0],))

    return sites


forms(
    first.validation_on_another_scale,
    _evaluated(ast.Name, ast.Subscript),
    known={
        "divided-by-a-fraction": inline("<x> / (1 / <s>)"),
        "a-line-ahead": ahead("<s> * <x>", name="inputs"),
    },
    new={
        "in-a-function": function("x.mul(<s>)", "for_validation"),
        "with-a-name": inline("<x> * LARGEST", "LARGEST = <s>"),
    },
)
forms(
    first.validation_not_centred,
    _evaluated(ast.Name, ast.Subscript),
    known={
        "method": inline("<x>.add(3.0)"),
        "a-line-ahead": ahead("3.0 + <x>", name="inputs"),
    },
    new={
        "in-a-function": function("x - (-3.0)", "for_validation"),
        "less-another-mean": inline("<x> - MEAN_OF_INPUTS", "MEAN_OF_INPUTS = -3.0"),
    },
)
forms(
    first.noise_in_validation,
    _evaluated(ast.Name),
    known={
        "a-line-ahead": ahead("<x> + torch.randn(<x>.shape) * <s>", name="inputs"),
        "drawn-around-it": inline("torch.normal(<x>, <s>)"),
    },
    new={
        "in-a-function": inline(
            "augmented(<x>)",
            "def augmented(batch):",
            "    return batch + torch.empty_like(batch).normal_(0.0, <s>)",
        ),
        "dropout-for-all": inline("F.dropout(<x>, 1 - 1 / (1 + <s>), training=True)"),
    },
)
