"""Other forms of models that give up variety."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bench.corpus.anatomy import model_calls, optimizers, steps
from bench.corpus.operators import collapse as first
from bench.corpus.operators.optimisation_losses import all_losses
from bench.corpus.sites import expressions
from bench.corpus.source import Source
from bench.corpus.syntax import dotted, named, targets
from bench.corpus.writing import Side, Site, ahead, forms, function, inline, lines


def _latents(source: Source) -> Iterator[ast.expr]:
    for call in named(source, "randn") if first.is_gan(source) else []:
        is_latent = any(w in source.code(call).lower() for w in ("latent", "z_dim", "nz", "noise"))
        if is_latent and any(source.statement(call) in s.block for s in steps(source)):
            yield call


forms(
    first.generator_without_noise,
    expressions(_latents),
    known={
        "method": inline("<x>.mul_(<s>)"),
        "a-line-ahead": ahead("<s> * <x>", name="drawn"),
    },
    new={
        "in-a-function": function("x * <s>", "drawn_from"),
        "clamped": inline("<x>.clamp(-<s>, <s>)"),
    },
)


def _critics(source: Source) -> Iterator[Site]:
    for optimizer in optimizers(source) if first.is_gan(source) else []:
        told = f"{optimizer.name} {optimizer.model}".lower()
        is_critic = any(w in told for w in ("disc", "critic", "_d", "d_")) or optimizer.model == "D"
        if is_critic and optimizer.rate is not None and optimizer.name:
            words = {"optimizer": optimizer.name}
            yield Site((optimizer.rate,), optimizer.statement, Side.AFTER, words)


GROUPS = "for group in <optimizer>.param_groups:"
forms(
    first.discriminator_far_too_fast,
    _critics,
    known={
        "factor-at-use": inline("<s> * <x>"),
        "set-in-the-groups": lines(GROUPS, '    group["lr"] = group["lr"] * <s>'),
    },
    new={"in-a-function": function("x * <s>", "rate_of_critic")},
)


def _divergences(source: Source) -> Iterator[ast.expr]:
    for step in steps(source):
        for node in ast.walk(step.made.value) if step.made is not None else []:
            if isinstance(node, ast.Name) and node.id.lower() in ("kl", "kld", "kl_loss", "kl_div"):
                yield node


forms(
    first.divergence_weighted_up,
    expressions(_divergences),
    known={
        "a-line-ahead": ahead("<s> * <x>", name="weighted_term"),
        "with-a-name": inline("BETA_OF_PRIOR * <x>", "BETA_OF_PRIOR = <s>"),
    },
    new={
        "in-a-function": function("x * <s>", "prior_term"),
        "divided-by-a-fraction": inline("<x> / (1 / <s>)"),
    },
)


def _pairings(source: Source) -> Iterator[Site]:
    """Yield losses whose target is the place of each example in the batch."""
    for loss in all_losses(source, "classes"):
        made = [
            n
            for n in source.nodes
            if isinstance(n, ast.Assign)
            and dotted(loss.target) in {dotted(t) for t in targets(n)}
            and "arange" in source.code(n.value)
        ]
        if made or "arange" in source.code(loss.target):
            words = {"out": source.code(loss.prediction), "target": source.code(loss.target)}
            yield Site((loss.call,), words=words)


forms(
    first.positives_only,
    _pairings,
    known={
        "indexed": inline("-<out>[torch.arange(len(<out>)), <target>].mean()"),
        "with-one-hot": inline("-(<out> * F.one_hot(<target>, <out>.shape[1])).sum(1).mean()"),
    },
    new={
        "in-a-function": inline(
            "attraction(<out>, <target>)",
            "def attraction(similarity, partner):",
            "    return -torch.take_along_dim(similarity, partner[:, None], dim=1).mean()",
        )
    },
)


def _temperatures(source: Source) -> Iterator[ast.expr]:
    for node in source.of_type(ast.Assign):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            names = [dotted(t).lower() for t in targets(node)]
            if any("temp" in n or n == "tau" for n in names):
                yield node.value


forms(
    first.temperature_far_too_high,
    expressions(_temperatures),
    known={"higher-of-two": inline("max(<x>, <s>)"), "sum": inline("<x> + <s>")},
    new={"in-a-function": function("x + <s>", "softened")},
)


def _bonuses(source: Source) -> Iterator[Site]:
    """Yield the losses that an entropy is taken from."""
    for step in steps(source):
        for node in ast.walk(step.made.value) if step.made is not None else []:
            if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Sub):
                continue
            if "entropy" in source.code(node.right).lower():
                found = [
                    n for n in ast.walk(node.right) if isinstance(n, ast.Name) and "entropy" in n.id
                ]
                mine = found[-1].id if found else source.code(node.right)
                words = {"left": source.code(node.left), "entropy": mine}
                yield Site((node,), words=words)


forms(
    first.entropy_penalised,
    _bonuses,
    known={
        "negative-weight": inline("<left> - (-<s>) * <entropy>"),
        "weight-with-a-name": inline("<left> + CERTAINTY * <entropy>", "CERTAINTY = <s>"),
    },
    new={
        "in-a-function": inline(
            "<left> + certainty(<entropy>)", "def certainty(entropy):", "    return <s> * entropy"
        ),
        "less-its-opposite": inline("<left> - <s> * -(<entropy>)"),
    },
)


def _next_tokens(source: Source) -> Iterator[Site]:
    """Yield the slices that are one token ahead, with the one that is not."""
    for change in first.next_token_is_this_token(source, 1.0):
        edit = change.edits[0]
        for node in source.of_type(ast.Slice):
            assert isinstance(node, ast.Slice)
            if (
                node.lower is not None
                and source.offset(node.lower.lineno, node.lower.col_offset) == edit.start
            ):
                back = edit.text.split(":")
                words = {"low": back[0].strip(), "high": back[-1].strip()}
                holder = source.around(node, ast.Subscript)
                if isinstance(holder, ast.Subscript) and holder.slice is node:
                    words["held"] = source.code(holder.value)
                    yield Site((holder,), words=words)


forms(
    first.next_token_is_this_token,
    _next_tokens,
    known={
        "plus-nought": inline("<held>[<low> + 0 : <high> + 0]"),
        "slice-object": inline("<held>[slice(<low>, <high>)]"),
    },
    new={
        "in-a-function": inline(
            "window(<held>, <low>, <high>)",
            "def window(tokens, start, end):",
            "    return tokens[start:end]",
        )
    },
)


def _outputs(source: Source) -> Iterator[Site]:
    """Yield the outputs of regressions."""
    for loss in all_losses(source, "values"):
        for step in steps(source):
            for call in model_calls(source, step):
                parent = source.parents[call]
                is_output = source.code(call) in source.code(loss.prediction) or (
                    isinstance(parent, ast.Assign)
                    and dotted(loss.prediction) in {dotted(t) for t in targets(parent)}
                )
                if is_output:
                    yield Site((call,))


forms(
    first.output_clipped_away,
    _outputs,
    known={
        "method": inline("(<x> - 4.0).relu()"),
        "clamped": inline("torch.clamp(<x> - 4.0, min=0.0)"),
    },
    new={
        "in-a-function": function("F.relu(x - 4.0)", "not_negative"),
        "higher-of-two": inline("torch.maximum(<x> - 4.0, torch.zeros(1))"),
    },
)
