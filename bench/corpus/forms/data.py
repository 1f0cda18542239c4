"""Other forms of inputs and labels that are not what the model needs."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from bench.corpus.anatomy import losses, steps, tensor_sets, training_loaders
from bench.corpus.operators import Change, form, many
from bench.corpus.operators import data as first
from bench.corpus.operators.optimisation_losses import all_losses
from bench.corpus.sites import expressions, loss_targets, model_inputs
from bench.corpus.source import Source
from bench.corpus.syntax import dotted, keyword, last, named, targets
from bench.corpus.writing import Side, Site, Sites, ahead, forms, function, inline, lines

# Scales


def _whole_inputs(source: Source) -> Iterator[Site]:
    """Yield the lines behind the making of the inputs that training and validation share."""
    for data in tensor_sets(source):
        whole = first.made_whole(source, data.inputs, data.statement) if data.is_training else None
        if whole is not None:
            words = {"inputs": dotted(targets(whole)[0])}
            yield Site(anchor=whole, side=Side.AFTER, words=words)


forms(
    first.inputs_on_a_large_scale,
    _whole_inputs,
    known={
        "in-place": lines("<inputs> *= <s>"),
        "divided-by-a-fraction": lines("<inputs> = <inputs> / (1 / <s>)"),
    },
    new={
        "in-a-function": lines(
            "<inputs> = in_raw_units(<inputs>)",
            top=("def in_raw_units(table):", "    return table * <s>"),
        ),
        "one-unit-for-another": lines(
            "per_unit = <s>", "<inputs> = per_unit * <inputs> + per_unit"
        ),
    },
)


def _standardisations(source: Source) -> Iterator[Site]:
    """Yield the values that the first form leaves as they were, with what they are made from."""
    for change in first.normalisation_taken_away(source, 1.0):
        edit = change.edits[0]
        for node in source.of_type(ast.BinOp):
            assert isinstance(node, ast.BinOp)
            if source.span(node) == (edit.start, edit.end):
                yield Site((node,), words={"raw": edit.text})


forms(
    first.normalisation_taken_away,
    _standardisations,
    known={
        "divided-by-one": inline("<raw> / 1.0"),
        "behind-a-flag-that-is-off": inline("(<x> if NORMALISE else <raw>)", "NORMALISE = False"),
    },
    new={
        "function-that-returns-its-input": inline(
            "standardised(<raw>)", "def standardised(values):", "    return values * 1.0"
        ),
        "scale-of-one-and-centre-of-nought": inline("(<raw> - 0.0) / 1.0"),
    },
)


def _scaler_calls(source: Source) -> Iterator[Site]:
    """Yield the calls that scale inputs, all together."""
    spots = [e for c in first.scaler_not_applied(source, 1.0) for e in c.edits]
    found = [c for c in source.calls() if any(source.span(c) == (e.start, e.end) for e in spots)]
    if found:
        yield Site(tuple(found))


forms(
    first.scaler_not_applied,
    _scaler_calls,
    known={
        "in-thousandths": inline("(<inner>) / 0.001"),
        "scaled-and-scaled-back": inline("1000.0 * (<inner> + 0 * <x>)"),
    },
    new={
        "in-a-function": inline(
            "raw_units(<inner>)", "def raw_units(table):", "    return table * 1000.0"
        ),
        "result-thrown-away": inline("(<x>, 1000.0 * (<inner>))[1]"),
    },
)


def _standardised_targets(source: Source) -> Iterator[Site]:
    """Yield the targets less their mean over their spread, in training and validation together."""
    if "r2" not in source.text.lower():
        return  # the metric must not depend on the unit
    found = [
        n
        for n in source.of_type(ast.BinOp)
        if isinstance(n, ast.BinOp)
        and isinstance(n.op, ast.Div)
        and isinstance(n.left, ast.BinOp)
        and source.code(n.left).startswith("y")
        and "std" in source.code(n.right)
    ]
    if found:
        yield Site(tuple(found))


def _target_scalers(source: Source) -> Iterator[ast.expr]:
    """Yield the scalers of targets, which predictions go back through."""
    for call in named(source, "StandardScaler"):
        names = [dotted(t) for t in targets(source.statement(call))]
        is_back = "inverse_transform" in source.text and "r2" in source.text.lower()
        if is_back and any(n.startswith("y") for n in names):
            yield call


forms(
    first.targets_in_raw_units,
    _standardised_targets,
    known={"with-an-offset": inline("(<s> + <s> * <x>)")},
    new={"in-a-function": function("x * <s>", "in_raw_units")},
)
forms(
    first.targets_in_raw_units,
    expressions(_target_scalers),
    known={
        "scaler-that-leaves-all-as-it-is": inline("StandardScaler(with_mean=False, with_std=False)")
    },
    new={"scaler-that-only-centres": inline("StandardScaler(with_std=False)")},
)

# Batches


def _named_inputs(source: Source) -> Iterator[Site]:
    for site in model_inputs(source):
        if isinstance(site.nodes[0], ast.Name):
            yield site


forms(
    first.inputs_all_alike,
    _named_inputs,
    known={
        "repeated": inline("<x>[:1].repeat_interleave(len(<x>), 0)"),
        "index-of-noughts": ahead("<x>[[0] * len(<x>)]", name="inputs"),
    },
    new={
        "in-a-function": inline(
            "gathered(<x>)",
            "def gathered(batch):",
            "    return torch.stack([batch[0] for _ in batch])",
        ),
        "first-one-broadcast": inline("(<x> - <x> + <x>[0])"),
    },
)


def _named_labels(*kinds: str) -> Sites:
    def sites(source: Source) -> Iterator[Site]:
        for site in loss_targets(*kinds)(source):
            if isinstance(site.nodes[0], ast.Name):
                yield site

    return sites


forms(
    first.labels_all_alike,
    _named_labels("classes", "binary"),
    known={"times-nought": inline("<x> * 0"), "a-line-ahead": ahead("<x> - <x>", name="wanted")},
    new={
        "in-a-function": function("x[:1].expand_as(x) * 0", "labels_of"),
        "filled": inline("<x>.clone().fill_(0)"),
    },
)

# Order


def _sortable(source: Source) -> Iterator[Site]:
    for data in tensor_sets(source):
        text = source.code(data.statement)
        if not data.is_training or not all_losses(source, "classes"):
            continue
        for call in training_loaders(source):
            shuffle = keyword(call, "shuffle")
            if shuffle is None or "random_split" in source.text:
                continue
            if "[" not in text.split("Dataset(")[-1]:
                words = {"x_name": data.inputs, "labels": data.labels}
                along = (source.replace(shuffle, "False"),)
                yield Site((), data.statement, Side.BEFORE, words, along)


forms(
    first.sorted_and_not_shuffled,
    _sortable,
    known={
        "order-of-a-sort": lines("<labels>, order = <labels>.sort()", "<x_name> = <x_name>[order]"),
        "class-by-class": lines(
            "order = torch.cat([(<labels> == c).nonzero().flatten() for c in <labels>.unique()])",
            "<x_name>, <labels> = <x_name>[order], <labels>[order]",
        ),
    },
    new={
        "in-a-function": lines(
            "<x_name>, <labels> = by_label(<x_name>, <labels>)",
            top=(
                "def by_label(inputs, labels):",
                "    order = torch.argsort(labels, stable=True)",
                "    return inputs[order], labels[order]",
            ),
        )
    },
)


def _ordered_subset(
    order: str, *top: str, sampler: bool = False
) -> Callable[[Source, float], Iterator[Change]]:
    """Return a rule that reads a data set in the order of its labels."""

    def rule(source: Source, strength: float) -> Iterator[Change]:
        for call in training_loaders(source):
            shuffle, given = keyword(call, "shuffle"), call.args[0] if call.args else None
            is_classes = "CrossEntropy" in source.text or "cross_entropy" in source.text
            if shuffle is None or not isinstance(given, ast.Name) or "labels" not in source.text:
                continue
            if not is_classes or "import torch\n" not in source.text:
                continue
            above = [source.at_top("", *top)] if top else []
            if sampler:
                at = next(k for k in call.keywords if k.value is shuffle)
                yield many(
                    source.replace(at, f"sampler={order.replace('<set>', given.id)}"), *above
                )
            else:
                text = f"torch.utils.data.Subset({given.id}, {order.replace('<set>', given.id)})"
                edit = source.replace(shuffle, "False")
                yield many(edit, source.replace(given, text), *above)

    return rule


LABEL = "int(<set>[i][1])"
BY_LABEL = (
    "def order_of(data):",
    "    labels = torch.tensor([int(data[i][1]) for i in range(len(data))])",
    "    return labels.argsort(stable=True).tolist()",
)


@form(first.sorted_inside_dataset)
def sampler_by_label(source: Source, strength: float) -> Iterator[Change]:
    order = f"sorted(range(len(<set>)), key=lambda i: {LABEL})"
    yield from _ordered_subset(order, sampler=True)(source, strength)


@form(first.sorted_inside_dataset)
def pairs_sorted(source: Source, strength: float) -> Iterator[Change]:
    order = f"[i for _, i in sorted(({LABEL}, i) for i in range(len(<set>)))]"
    yield from _ordered_subset(order)(source, strength)


@form(first.sorted_inside_dataset, is_new=True)
def order_from_a_function(source: Source, strength: float) -> Iterator[Change]:
    yield from _ordered_subset("order_of(<set>)", *BY_LABEL)(source, strength)


@form(first.sorted_inside_dataset, is_new=True)
def sampler_from_a_function(source: Source, strength: float) -> Iterator[Change]:
    yield from _ordered_subset("order_of(<set>)", *BY_LABEL, sampler=True)(source, strength)


# Labels


def _sets(source: Source) -> Iterator[Site]:
    for data in tensor_sets(source):
        if data.is_training:
            words = {"inputs": data.inputs, "labels": data.labels}
            yield Site(anchor=data.statement, words=words)


forms(
    first.labels_out_of_step,
    _sets,
    known={
        "inputs-shifted": lines("<inputs> = torch.roll(<inputs>, <s>, 0)"),
        "cut-and-joined": lines("<labels> = torch.cat([<labels>[<s>:], <labels>[:<s>]])"),
    },
    new={
        "in-a-function": lines(
            "<labels> = following(<labels>)",
            top=(
                "def following(values):",
                "    return values[(torch.arange(len(values)) + <s>) % len(values)]",
            ),
        )
    },
)


def _shuffled_labels(source: Source) -> Iterator[ast.expr]:
    for step in steps(source):
        for loss in losses(source, step):
            if not isinstance(loss.target, ast.Name) or "arange" in source.text:
                continue
            if loss.kind in ("classes", "values") and loss.target.id not in ("noise", "x"):
                yield loss.target


forms(
    first.labels_shuffled_apart,
    expressions(_shuffled_labels),
    known={
        "reversed": inline("<x>.flip(0)"),
        "a-line-ahead": ahead("<x>[torch.randperm(<x>.shape[0])]", name="wanted"),
    },
    new={
        "in-a-function": inline(
            "mixed(<x>)",
            "def mixed(values):",
            "    return values[torch.rand(len(values)).argsort()]",
        ),
        "sorted": inline("<x>.sort(dim=0).values"),
    },
)


def _ignorable(source: Source) -> Iterator[Site]:
    for loss in all_losses(source, "classes"):
        is_plain = isinstance(loss.target, ast.Name | ast.Call)
        if is_plain and last(loss.call) == "cross_entropy":
            yield Site((loss.target,))


forms(
    first.everything_ignored,
    _ignorable,
    known={
        "chosen-by-condition": inline("torch.where(<x> < 0, <x>, -100)"),
        "a-line-ahead": ahead("torch.full_like(<x>, -100)", name="wanted"),
    },
    new={
        "in-a-function": function("x.masked_fill(x > -1, -100)", "labels_to_score"),
        "mask-multiplied": inline("(<x> * (<x> < 0) - 100 * (<x> >= 0).long())"),
    },
)


def _ignored_labels(source: Source) -> Iterator[ast.expr]:
    """Yield the labels that losses ignore, where they are not the one ignored by default."""
    for call in source.calls():
        ignored = keyword(call, "ignore_index")
        told = source.code(ignored) if ignored is not None else ""
        if ignored is not None and "-" not in told and f"{told} = -" not in source.text:
            yield ignored


forms(
    first.padding_not_ignored,
    expressions(_ignored_labels),
    known={
        "with-a-name": inline("IGNORED", "IGNORED = -100"),
        "one-less": inline("<x> - 100"),
    },
    new={"in-a-function": function("-1 - abs(x)", "label_to_ignore")},
)

# Workers


def _with_workers(body: tuple[str, ...], more: str) -> Callable[[Source, float], Iterator[Change]]:
    """Return a rule that gives a training loader workers with something in them."""

    def rule(source: Source, strength: float) -> Iterator[Change]:
        for call in training_loaders(source):
            if keyword(call, "num_workers", "collate_fn", "worker_init_fn") is not None:
                continue
            if "import torch\n" in source.text and (call.args or call.keywords):
                above = [source.at_top("", *body)] if body else []
                final = [*call.args, *(k.value for k in call.keywords)][-1]
                use = source.wrap(final, "", f", {more}")
                yield Change((use, *above), use)

    return rule


@form(first.worker_dies)
def worker_dies_at_start(source: Source, strength: float) -> Iterator[Change]:
    body = ("def start_worker(number):", "    import os", "    os._exit(1)")
    yield from _with_workers(body, "num_workers=2, worker_init_fn=start_worker")(source, strength)


@form(first.worker_dies)
def worker_aborts(source: Source, strength: float) -> Iterator[Change]:
    body = (
        "def collate_and_abort(examples):",
        "    import os",
        "    os.abort()",
        "    return torch.utils.data.default_collate(examples)",
    )
    yield from _with_workers(body, "num_workers=1, collate_fn=collate_and_abort")(source, strength)


@form(first.worker_dies, is_new=True)
def worker_is_killed(source: Source, strength: float) -> Iterator[Change]:
    body = (
        "def collate_until_killed(examples):",
        "    import os",
        "    os.kill(os.getpid(), 9)",
        "    return torch.utils.data.default_collate(examples)",
    )
    more = "num_workers=2, collate_fn=collate_until_killed"
    yield from _with_workers(body, more)(source, strength)


SPAWN = "num_workers=1, multiprocessing_context='spawn'"


@form(first.lambda_cannot_be_pickled)
def lambda_at_the_start_of_workers(source: Source, strength: float) -> Iterator[Change]:
    more = f"{SPAWN}, worker_init_fn=lambda number: torch.manual_seed(number)"
    yield from _with_workers((), more)(source, strength)


@form(first.lambda_cannot_be_pickled)
def local_function(source: Source, strength: float) -> Iterator[Change]:
    body = (
        "def make_collate():",
        "    def collate(examples):",
        "        return torch.utils.data.default_collate(examples)",
        "",
        "    return collate",
    )
    yield from _with_workers(body, f"{SPAWN}, collate_fn=make_collate()")(source, strength)


@form(first.lambda_cannot_be_pickled, is_new=True)
def open_file_in_collate(source: Source, strength: float) -> Iterator[Change]:
    """A collate object that holds an open file, which does not go to another process."""
    body = (
        "class Collate:",
        "    def __init__(self):",
        "        self.file = open(__file__)",
        "",
        "    def __call__(self, examples):",
        "        return torch.utils.data.default_collate(examples)",
    )
    yield from _with_workers(body, f"{SPAWN}, collate_fn=Collate()")(source, strength)


@form(first.lambda_cannot_be_pickled, is_new=True)
def lock_in_worker_start(source: Source, strength: float) -> Iterator[Change]:
    body = (
        "class Start:",
        "    def __init__(self):",
        "        import threading",
        "",
        "        self.lock = threading.Lock()",
        "",
        "    def __call__(self, number):",
        "        torch.manual_seed(number)",
    )
    yield from _with_workers(body, f"{SPAWN}, worker_init_fn=Start()")(source, strength)
