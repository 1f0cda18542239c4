"""Models that give up variety."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bench.corpus.anatomy import model_calls, optimizers, steps
from bench.corpus.operators import Change, Ends, one, operator
from bench.corpus.operators.optimisation_losses import all_losses
from bench.corpus.operators.optimisation_rates import scaled
from bench.corpus.source import Source
from bench.corpus.syntax import dotted, named, targets


def is_gan(source: Source) -> bool:
    text = source.text.lower()
    return "discriminator" in text and "generator" in text


@operator("generator-mode-collapse", strengths=(0, 0.01))
def generator_without_noise(source: Source, strength: float) -> Iterator[Change]:
    """The generator is given next to nothing to tell its samples apart by."""
    if not is_gan(source):
        return
    for call in named(source, "randn"):
        statement = source.statement(call)
        is_latent = any(w in source.code(call).lower() for w in ("latent", "z_dim", "nz", "noise"))
        if is_latent and any(statement in s.block for s in steps(source)):
            yield one(source.wrap(call, "", f" * {strength:g}"))


@operator("generator-mode-collapse", accepted=("lr-too-high",), strengths=(30,))
def discriminator_far_too_fast(source: Source, strength: float) -> Iterator[Change]:
    """The discriminator wins at once; its rate is why."""
    if not is_gan(source):
        return
    for optimizer in optimizers(source):
        told = f"{optimizer.name} {optimizer.model}".lower()
        is_critic = any(w in told for w in ("disc", "critic", "_d", "d_")) or optimizer.model == "D"
        if is_critic and optimizer.rate is not None:
            yield one(scaled(source, optimizer.rate, strength))


@operator("posterior-collapse", accepted=("competing-losses",), strengths=(10, 100))
def divergence_weighted_up(source: Source, strength: float) -> Iterator[Change]:
    """The KL term outweighs reconstruction: it goes to zero and the other term is given up."""
    for step in steps(source):
        if step.made is None:
            continue
        for node in ast.walk(step.made.value):
            if isinstance(node, ast.Name) and node.id.lower() in ("kl", "kld", "kl_loss", "kl_div"):
                yield one(source.wrap(node, f"{strength:g} * ", ""))


@operator("representation-collapse")
def positives_only(source: Source, strength: float) -> Iterator[Change]:
    """The pairs are pulled together and nothing is pushed apart."""
    for loss in all_losses(source, "classes"):
        made = [
            n
            for n in source.nodes
            if isinstance(n, ast.Assign)
            and dotted(loss.target) in {dotted(t) for t in targets(n)}
            and "arange" in source.code(n.value)
        ]
        if made or "arange" in source.code(loss.target):
            out = source.code(loss.prediction)
            yield one(
                source.replace(
                    loss.call, f"-{out}.gather(1, {source.code(loss.target)}[:, None]).mean()"
                )
            )


@operator("representation-collapse", strengths=(100, 1000))
def temperature_far_too_high(source: Source, strength: float) -> Iterator[Change]:
    for node in source.nodes:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Constant)
            and any(
                "temp" in dotted(t).lower() or dotted(t).lower() == "tau" for t in targets(node)
            )
        ):
            yield one(source.replace(node.value, f"{strength:g}"))


@operator("policy-entropy-collapse", strengths=(0.3, 3))
def entropy_penalised(source: Source, strength: float) -> Iterator[Change]:
    """The entropy bonus has the wrong sign."""
    for step in steps(source):
        if step.made is None:
            continue
        for node in ast.walk(step.made.value):
            is_less = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)
            if (
                is_less
                and isinstance(node, ast.BinOp)
                and "entropy" in source.code(node.right).lower()
            ):
                name = [
                    n for n in ast.walk(node.right) if isinstance(n, ast.Name) and "entropy" in n.id
                ]
                mine = name[-1].id if name else source.code(node.right)
                yield one(source.replace(node, f"{source.code(node.left)} + {strength:g} * {mine}"))


@operator("misaligned-labels", accepted=("repetition-collapse", "data-leakage"))
def next_token_is_this_token(source: Source, strength: float) -> Iterator[Change]:
    """The target is the input itself: it is learnt at once, and generation repeats one token."""
    for node in source.nodes:
        if not isinstance(node, ast.Assign) or len(targets(node)) != 1:
            continue
        for part in ast.walk(node.value):
            if not isinstance(part, ast.Subscript):
                continue
            slices = part.slice.elts if isinstance(part.slice, ast.Tuple) else [part.slice]
            for piece in slices:
                if not isinstance(piece, ast.Slice) or piece.lower is None:
                    continue
                low = source.code(piece.lower).replace(" ", "")
                high = source.code(piece.upper).replace(" ", "") if piece.upper else ""
                is_next = low.endswith("+1") and "+1" in high
                if is_next:
                    back = source.code(piece).replace(" + 1", "", 2)
                    yield one(source.replace(piece, back))


@operator("constant-prediction", accepted=("dead-relu",), ends=Ends.RUNS)
def output_clipped_away(source: Source, strength: float) -> Iterator[Change]:
    """A ReLU on the output of a regression, far below zero: one value for every input."""
    for loss in all_losses(source, "values"):
        for step in steps(source):
            for call in model_calls(source, step):
                parent = source.parents[call]
                is_output = source.code(call) in source.code(loss.prediction) or (
                    isinstance(parent, ast.Assign)
                    and dotted(loss.prediction) in {dotted(t) for t in targets(parent)}
                )
                if is_output:
                    yield one(source.wrap(call, "torch.relu(", " - 4.0)"))
