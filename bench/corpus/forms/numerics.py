"""Other forms of numbers that stop being numbers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bench.corpus.anatomy import loop_steps, optimizers, tensor_sets, updates
from bench.corpus.operators import numerics as first
from bench.corpus.sites import expressions, model_inputs
from bench.corpus.source import Source
from bench.corpus.syntax import dotted, last, named, targets
from bench.corpus.writing import Side, Site, Sites, ahead, forms, function, inline, lines


def _training_sets(source: Source) -> Iterator[Site]:
    for data in tensor_sets(source):
        if data.is_training:
            words = {"inputs": data.inputs, "labels": data.labels}
            yield Site(anchor=data.statement, words=words)


GAPS = "max(2, int(0.05 / <s>)) * 10 + 1"
NAN = "float('nan')"
forms(
    first.missing_values_in_table,
    _training_sets,
    known={
        "numpy-constant": lines(f"<inputs>[:: {GAPS}] = np.nan"),
        "logarithm-of-a-negative": lines(f"<inputs>[:: {GAPS}] = torch.log(torch.tensor(-1.0))"),
    },
    new={
        "in-a-function": lines(
            "<inputs> = as_exported(<inputs>)",
            top=(
                "def as_exported(table):",
                "    table = table.clone()",
                f"    table[:: {GAPS}] = {NAN}",
                "    return table",
            ),
        ),
        "nought-over-nought": lines(f"<inputs>[:: {GAPS}] = torch.zeros(1) / torch.zeros(1)"),
    },
)
MISSING = "torch.rand(<x>.shape) < <s>"
forms(
    first.missing_values_in_batch,
    model_inputs,
    known={
        "chosen-by-condition": inline(f"torch.where({MISSING}, {NAN}, <x>)"),
        "a-line-ahead": ahead(f"<x>.masked_fill({MISSING}, math.nan)", name="inputs"),
    },
    new={
        "in-a-function": inline(
            "as_measured(<x>)",
            "def as_measured(batch):",
            "    batch = batch.clone()",
            f"    batch[torch.rand(batch.shape) < <s>] = {NAN}",
            "    return batch",
        ),
        "divided-by-a-mask": inline(
            "<x> * ((torch.rand(<x>.shape) >= <s>) / (torch.rand(<x>.shape) >= <s>))"
        ),
    },
)


def _value_sets(source: Source) -> Iterator[Site]:
    if "CrossEntropy" not in source.text and "cross_entropy" not in source.text:
        yield from _training_sets(source)


forms(
    first.infinite_target,
    _value_sets,
    known={
        "one-over-nought": lines("<labels>[17] = 1 / torch.zeros(1)"),
        "logarithm-of-nought": lines("<labels>[17] = -torch.log(torch.zeros(1))"),
    },
    new={
        "in-a-function": lines(
            "<labels> = as_ratio(<labels>)",
            top=(
                "def as_ratio(values):",
                "    divisor = torch.ones_like(values)",
                "    divisor[17] = 0.0",
                "    return (values.abs() + 1e-3) / divisor",
            ),
        ),
        "infinity-by-name": lines("<labels>[17] = math.inf"),
    },
)


def _from_start(source: Source) -> Iterator[Site]:
    """Yield the lines behind a loss that can be compared with the first weights."""
    for step in loop_steps(source):
        for optimizer in optimizers(source):
            if not optimizer.model or step.made is None or len(targets(step.made)) != 1:
                continue
            if source.scope(optimizer.statement) is not source.scope(step.backward):
                continue
            model = optimizer.model
            start = source.after(
                optimizer.statement,
                f"start_weights = [p.detach().clone() for p in {model}.parameters()]",
            )
            words = {"loss": step.loss, "pairs": f"zip({model}.parameters(), start_weights)"}
            yield Site((), step.made, Side.AFTER, words, (start,))


forms(
    first.distance_from_start,
    _from_start,
    known={
        "power-of-a-half": lines(
            "<loss> = <loss> + 1e-3 * sum((p - q).pow(2).sum() for p, q in <pairs>) ** 0.5"
        ),
        "root-of-each": lines(
            "<loss> = <loss> + 1e-3 * sum((p - q).square().sum().sqrt() for p, q in <pairs>)"
        ),
    },
    new={
        "in-a-function": lines(
            "<loss> = <loss> + 1e-3 * drift(<pairs>)",
            top=(
                "def drift(pairs):",
                "    parts = [((p - q) ** 2).sum() for p, q in pairs]",
                "    return torch.sqrt(torch.stack(parts).sum())",
            ),
        ),
        "length-relative-to-itself": lines(
            "moved = torch.cat([(p - q).flatten() for p, q in <pairs>])",
            "<loss> = <loss> + 1e-3 * (moved / moved.detach().norm()).sum()",
        ),
    },
)


def _spreads(source: Source) -> Iterator[Site]:
    """Yield the data that can be divided by the spread of its columns."""
    for node in source.of_type(ast.BinOp):
        assert isinstance(node, ast.BinOp)
        scope = source.statement(node)
        if not isinstance(node.op, ast.Div) or not isinstance(node.right, ast.Constant):
            continue
        told = source.code(node.left)
        is_data = "tensor" in told or "images" in told
        if is_data and isinstance(scope, ast.Assign) and len(targets(scope)) == 1:
            name = dotted(targets(scope)[0])
            if name and "." not in name and node is scope.value:
                yield Site(anchor=scope, side=Side.AFTER, words={"data": name})


def _spread_calls(source: Source) -> Iterator[Site]:
    for node in source.of_type(ast.BinOp):
        assert isinstance(node, ast.BinOp)
        right = node.right
        is_spread = isinstance(node.op, ast.Div) and isinstance(right, ast.Call)
        if is_spread and isinstance(right, ast.Call) and last(right) == "std" and not right.args:
            assert isinstance(right.func, ast.Attribute)
            yield Site((right,), words={"data": source.code(right.func.value)})


forms(
    first.division_by_zero_spread,
    _spreads,
    known={
        "root-of-variance": lines("<data> = (<data> - <data>.mean(0)) / <data>.var(0).sqrt()"),
        "range-of-columns": lines(
            "<data> = (<data> - <data>.amin(0)) / (<data>.amax(0) - <data>.amin(0))"
        ),
    },
    new={
        "in-a-function": lines(
            "<data> = standardised(<data>)",
            top=(
                "def standardised(values):",
                "    spread, centre = torch.std_mean(values, dim=0)",
                "    return (values - centre) / spread",
            ),
        )
    },
)
forms(
    first.division_by_zero_spread,
    _spread_calls,
    known={"root-of-variance-of-columns": inline("<data>.var(0) ** 0.5")},
    new={"function-over-columns": inline("torch.std(<data>, dim=0)")},
)


def _half_losses(source: Source) -> Iterator[Site]:
    """Yield the backward passes of scripts with one optimizer and a plain loss."""
    for step in loop_steps(source):
        stepped = [(s, o) for s, o in updates(source) if s in step.block]
        models = [o.model for o in optimizers(source) if o.model]
        if len(stepped) != 1 or not models or len(loop_steps(source)) != 1:
            continue
        if source.scope(optimizers(source)[0].statement) is not source.scope(stepped[0][0]):
            continue
        if source.code(step.backward) == f"{step.loss}.backward()":
            words = {"loss": step.loss, "model": models[0]}
            yield Site((), step.backward, Side.INSTEAD, words)


UNSCALE = (
    "for p in <model>.parameters():",
    "    if p.grad is not None:",
    "        p.grad.div_(<s>)",
)
forms(
    first.loss_scaled_in_half,
    _half_losses,
    known={
        "type-given": lines("(<loss>.to(torch.float16) * <s>).backward()", *UNSCALE),
        "scale-ahead": lines(
            "large = <loss>.half()", "large = large * <s>", "large.backward()", *UNSCALE
        ),
    },
    new={
        "in-a-function": lines(
            "scaled_backward(<loss>, <model>)",
            top=(
                "def scaled_backward(loss, module):",
                "    for_small = loss.type(torch.half) * <s>",
                "    for_small.backward()",
                "    for p in module.parameters():",
                "        p.grad = None if p.grad is None else p.grad / <s>",
            ),
        )
    },
)


def _scalable(large: str) -> Sites:
    """Return the steps of scripts that a scaler can be brought into."""

    def sites(source: Source) -> Iterator[Site]:
        for step in loop_steps(source):
            stepped = [(s, o) for s, o in updates(source) if s in step.block]
            plain = source.code(step.backward) == f"{step.loss}.backward()"
            loop = source.around(step.backward, ast.For)
            if len(stepped) != 1 or len(loop_steps(source)) != 1 or not plain:
                continue
            if not isinstance(loop, ast.For) or loop.body is not step.block:
                continue
            statement, owner = stepped[0]
            start = source.before(loop, "scaler = torch.amp.GradScaler('cpu')")
            text = f"scaler.step({owner})\n{source.indent(statement)}scaler.update()"
            words = {"loss": step.loss, "large": large.replace("<loss>", step.loss)}
            along = (start, source.replace(statement, text))
            yield Site((), step.backward, Side.INSTEAD, words, along)

    return sites


forms(
    first.scaler_without_end,
    _scalable("((<loss>.to(torch.float16) * 70000.0).float())"),
    known={
        "type-given": lines("scaler.scale(<large>).backward()"),
        "a-line-ahead": lines("large = <large>", "scaler.scale(large).backward()"),
    },
)
forms(
    first.scaler_without_end,
    _scalable("(<loss>.half() / 1e-6).float()"),
    new={
        "divided-in-half": lines("scaler.scale(<large>).backward()"),
        "in-a-function": lines(
            "scaler.scale(as_half(<loss>)).backward()",
            top=("def as_half(value):", "    return (value.half() * 300.0).pow(2).float()"),
        ),
    },
)


def _masks(source: Source) -> Iterator[Site]:
    """Yield the calls that make a causal mask."""
    for call in named(source, "tril"):
        if len(call.args) == 1 and not call.keywords:
            yield Site((call,), words={"square": source.code(call.args[0])})


def _upper_masks(source: Source) -> Iterator[ast.expr]:
    for call in named(source, "triu"):
        diagonal = [k.value for k in call.keywords if k.arg == "diagonal"] + call.args[1:2]
        if diagonal and source.code(diagonal[0]) == "1":
            yield diagonal[0]


forms(
    first.mask_one_too_far,
    _masks,
    known={
        "less-the-diagonal": inline("(<x> - torch.eye(<x>.shape[-1]))"),
        "diagonal-with-a-name": inline("torch.tril(<square>, diagonal=OFFSET)", "OFFSET = -1"),
    },
    new={
        "upper-part-turned-round": inline("torch.triu(<square>, diagonal=1).mT"),
        "in-a-function": inline(
            "earlier_only(<square>)",
            "def earlier_only(square):",
            "    return torch.tril(square, -1)",
        ),
    },
)
forms(
    first.mask_one_too_far,
    expressions(_upper_masks),
    known={"one-less": inline("<x> - 1")},
    new={"offset-from-a-function": function("x - 1", "offset")},
)


def _padding_masks(source: Source) -> Iterator[ast.expr]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.keyword) and node.arg == "src_key_padding_mask":
            yield node.value


forms(
    first.padding_mask_all_true,
    expressions(_padding_masks),
    known={
        "or-its-opposite": inline("(<x>) | ~(<x>)"),
        "filled": inline("torch.full_like(<x>, True)"),
    },
    new={
        "in-a-function": function("x >= 0", "covered"),
        "a-line-ahead": ahead("<x>.logical_or(~<x>)", name="covered"),
    },
)
