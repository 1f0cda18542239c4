"""Other forms of losses that do not fit what they are given."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bench.corpus.anatomy import forwards, losses, method, modules, steps
from bench.corpus.operators import Change, form, many
from bench.corpus.operators import optimisation_losses as first
from bench.corpus.operators.optimisation_losses import all_losses
from bench.corpus.sites import (
    behind_losses,
    behind_optimizers,
    loss_calls,
    predictions,
)
from bench.corpus.source import Source
from bench.corpus.syntax import last
from bench.corpus.writing import Site, ahead, forms, function, inline, lines, module

SHARE = "torch.exp(<x>) / torch.exp(<x>).sum(dim=1, keepdim=True)"
forms(
    first.softmax_ahead_of_loss,
    predictions("classes"),
    known={
        "softmax-layer": inline("nn.Softmax(dim=1)(<x>)"),
        "functional-a-line-ahead": ahead("F.softmax(<x>, dim=1)", name="probabilities"),
    },
    new={
        "exp-over-sum": ahead(SHARE, name="probabilities"),
        "in-a-module-of-its-own": module("x.softmax(dim=1)", "Normalised"),
        "sigmoid-over-sum": function(
            "torch.sigmoid(x) / torch.sigmoid(x).sum(dim=1, keepdim=True)", "to_probabilities"
        ),
    },
)


def _model_outputs(source: Source) -> Iterator[Site]:
    """Yield what the last module returns, or the last layer of a sequence."""
    is_classifier = all_losses(source, "classes") or (
        not steps(source) and any(k in source.text for k in ("classes", "num_labels"))
    )
    found = forwards(source) if is_classifier else []
    final = found[-1].body[-1] if found else None
    if isinstance(final, ast.Return) and isinstance(final.value, ast.Call):
        yield Site((final.value,))


forms(
    first.softmax_in_model,
    _model_outputs,
    known={
        "functional-ahead-of-return": ahead("F.softmax(<x>, dim=-1)", name="probabilities"),
        "in-a-function": function("torch.nn.functional.softmax(x, dim=-1)", "normalised"),
    },
    new={
        "exp-over-sum": ahead(SHARE.replace("dim=1", "dim=-1"), name="probabilities"),
        "exp-of-log-softmax": inline("torch.log_softmax(<x>, dim=-1).exp()"),
    },
)


@form(first.softmax_in_model, is_new=True)
def layer_of_the_module(source: Source, strength: float) -> Iterator[Change]:
    """A softmax layer made in the constructor and called in forward."""
    for site in _model_outputs(source):
        klass = source.around(site.nodes[0], ast.ClassDef)
        init = method(klass, "__init__") if isinstance(klass, ast.ClassDef) else None
        if init is not None and "nn" in source.text and klass in modules(source):
            made = source.after(init.body[-1], "self.to_shares = torch.nn.Softmax(dim=-1)")
            yield many(source.wrap(site.nodes[0], "self.to_shares(", ")"), made)


forms(
    first.sigmoid_ahead_of_logits_loss,
    predictions("binary"),
    known={
        "a-line-ahead": ahead("<x>.sigmoid()", name="probabilities"),
        "sigmoid-layer": inline("nn.Sigmoid()(<x>)"),
    },
    new={
        "by-its-formula": function("1 / (1 + torch.exp(-x))", "to_probability"),
        "half-a-tanh": inline("(0.5 + 0.5 * torch.tanh(0.5 * <x>))"),
    },
)
forms(
    first.nll_of_logits,
    loss_calls("classes"),
    known={
        "loss-made-in-place": inline("nn.NLLLoss()(<out>, <target>)"),
        "gathered-by-hand": inline("-<out>.gather(1, <target>.unsqueeze(1)).mean()"),
    },
    new={
        "in-a-function": inline(
            "class_loss(<out>, <target>)",
            "def class_loss(scores, labels):",
            "    return F.nll_loss(scores, labels)",
        ),
        "with-one-hot": inline("-(<out> * F.one_hot(<target>, <out>.shape[1])).sum(dim=1).mean()"),
    },
)
forms(
    first.bce_of_logits,
    loss_calls("binary"),
    known={
        "loss-made-in-place": inline("nn.BCELoss()(<out>, <target>)"),
        "by-its-formula": inline(
            "-(<target> * torch.log(<out>) + (1 - <target>) * torch.log(1 - <out>)).mean()"
        ),
    },
    new={
        "clamped-into-range": inline(
            "F.binary_cross_entropy((<out>).clamp(1e-6, 1 - 1e-6), <target>)"
        ),
        "in-a-function": inline(
            "binary_loss(<out>, <target>)",
            "def binary_loss(scores, labels):",
            "    return F.binary_cross_entropy(scores, labels)",
        ),
    },
)
forms(
    first.squared_error_on_class_index,
    loss_calls("classes"),
    known={
        "by-hand": inline("((<out>.max(dim=1).values - <target>) ** 2).mean()"),
        "loss-made-in-place": inline("nn.MSELoss()(<out>.amax(dim=1), <target>.float())"),
    },
    new={
        "absolute-error": inline("F.l1_loss(<out>.amax(dim=1), <target>.float())"),
        "expected-index": inline(
            "index_error(<out>, <target>)",
            "def index_error(scores, labels):",
            "    best = scores.max(dim=1).values",
            "    return nn.functional.smooth_l1_loss(best, labels.to(best.dtype))",
        ),
    },
)
forms(
    first.cross_entropy_of_one_output,
    loss_calls("values"),
    known={
        "loss-made-in-place": inline(
            "nn.CrossEntropyLoss()(<out>.reshape(-1, 1), <target>.reshape(-1, 1))"
        ),
        "by-log-softmax": inline(
            "-(<target>.reshape(-1, 1) * F.log_softmax(<out>.reshape(-1, 1), dim=1)).mean()"
        ),
    },
    new={
        "class-nought-for-all": inline(
            "F.cross_entropy(<out>.reshape(-1, 1), torch.zeros(<out>.numel(), dtype=torch.long))"
        ),
        "in-a-function": inline(
            "fit_loss(<out>, <target>)",
            "def fit_loss(values, wanted):",
            "    return F.cross_entropy(values.reshape(-1, 1), wanted.reshape(-1, 1))",
        ),
    },
)


def _made(source: Source) -> Iterator[Site]:
    return behind_losses(source) if all_losses(source, "classes", "values") else iter(())


forms(
    first.loss_maximised,
    _made,
    known={
        "negated-a-line-later": lines("<loss> = -<loss>"),
        "times-minus-one": lines("<loss> = <loss> * -1.0"),
    },
    new={
        "one-less-loss": lines("<loss> = 1 - <loss>"),
        "turned-into-a-score": lines(
            "<loss> = as_score(<loss>)", top=("def as_score(value):", "    return value.neg()")
        ),
    },
)


def _asked_to_maximise(source: Source) -> Iterator[Site]:
    if not all_losses(source, "classes", "values"):
        return
    yield from behind_optimizers(source)


forms(
    first.loss_maximised,
    _asked_to_maximise,
    new={
        "optimizer-maximises": lines(
            "for group in <optimizer>.param_groups:", '    group["maximize"] = True'
        )
    },
)


def _column_targets(source: Source) -> Iterator[Site]:
    """Yield the targets beside predictions that lost their last axis."""
    for step in steps(source):
        for loss in losses(source, step):
            places = [loss.prediction, *_values_of(source, source.code(loss.prediction))]
            if loss.kind == "values" and any(
                isinstance(p, ast.Call) and last(p) in ("squeeze", "flatten", "view")
                for p in places
            ):
                yield Site((loss.target,))


def _values_of(source: Source, name: str) -> list[ast.expr]:
    return [
        n.value
        for n in source.nodes
        if isinstance(n, ast.Assign) and name in [source.code(t) for t in n.targets]
    ]


forms(
    first.squeeze_forgotten,
    _column_targets,
    known={
        "target-unsqueezed": inline("<x>.unsqueeze(-1)"),
        "target-viewed": ahead("<x>.view(-1, 1)", name="wanted"),
    },
    new={
        "target-with-new-axis": inline("<x>[:, None]"),
        "in-a-function": function("x.reshape(len(x), 1)", "as_column"),
    },
)


def _flat_targets(source: Source) -> Iterator[Site]:
    for loss in all_losses(source, "values"):
        if "squeeze" not in source.text and "flatten" not in source.code(loss.prediction):
            yield Site((loss.target,))


forms(
    first.target_flattened,
    _flat_targets,
    known={"viewed": inline("<x>.view(-1)"), "a-line-ahead": ahead("<x>.squeeze()", name="wanted")},
    new={"in-a-function": function("x.ravel()", "as_row"), "indexed": inline("<x>[..., 0]")},
)

WEIGHTS = "torch.tensor([<s>] + [1.0] * (<out>.shape[1] - 1))"
forms(
    first.one_class_outweighs,
    loss_calls("classes"),
    known={
        "loss-made-in-place": inline(f"nn.CrossEntropyLoss(weight={WEIGHTS})(<out>, <target>)"),
        "weight-set-by-index": inline(
            "F.cross_entropy(<out>, <target>, weight=class_weights(<out>.shape[1]))",
            "def class_weights(count):",
            "    weight = torch.ones(count)",
            "    weight[0] = <s>",
            "    return weight",
        ),
    },
    new={
        "weighed-by-example": inline(
            '(F.cross_entropy(<out>, <target>, reduction="none")'
            " * torch.where(<target> == 0, <s>, 1.0)).mean()"
        ),
        "weight-filled-in": inline(
            "F.cross_entropy(<out>, <target>, "
            "weight=torch.ones(<out>.shape[1]).index_fill(0, torch.tensor([0]), <s>))"
        ),
    },
)
TIMES = "(<s> * <out>)"
forms(
    first.logarithm_of_softmax,
    loss_calls("classes"),
    known={
        "nll-of-log-of-softmax": inline(
            f"F.nll_loss(torch.log(torch.softmax({TIMES}, dim=1)), <target>)"
        ),
        "softmax-layer": inline(f"F.nll_loss(nn.Softmax(dim=1){TIMES}.log(), <target>)"),
    },
    new={
        "exp-over-sum": inline(
            "cross_entropy_by_hand(<s> * <out>, <target>)",
            "def cross_entropy_by_hand(scores, labels):",
            "    shares = scores.exp() / scores.exp().sum(dim=1, keepdim=True)",
            "    return -shares.gather(1, labels.unsqueeze(1)).log().mean()",
        ),
        "log-of-sum-of-exp": inline(
            f"(torch.log(torch.exp({TIMES}).sum(dim=1))"
            f" - {TIMES}.gather(1, <target>.unsqueeze(1)).squeeze(1)).mean()"
        ),
    },
)
SURE = "torch.sigmoid(8 * (<out>))"
forms(
    first.logarithm_of_sigmoid,
    loss_calls("binary"),
    known={
        "two-logarithms": inline(
            f"-torch.where(<target> > 0.5, {SURE}.log(), (1 - {SURE}).log()).mean()"
        ),
        "exp-in-the-denominator": inline(
            "(torch.log(1 + torch.exp(-8 * (<out>))) + (1 - <target>) * 8 * (<out>)).mean()"
        ),
    },
    new={
        "in-a-function": inline(
            "binary_loss(<out>, <target>)",
            "def binary_loss(scores, labels):",
            "    p = 1 / (1 + torch.exp(-8 * scores))",
            "    return -(labels * p.log() + (1 - labels) * (1 - p).log()).mean()",
        )
    },
)
