"""Losses that do not fit what they are given."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bench.corpus.anatomy import Loss, forwards, losses, steps
from bench.corpus.operators import Change, Ends, one, operator
from bench.corpus.source import Source
from bench.corpus.syntax import dotted, last, named


def all_losses(source: Source, *kinds: str) -> list[Loss]:
    found = [x for s in steps(source) for x in losses(source, s) if x.kind in kinds]
    return [x for i, x in enumerate(found) if x.call not in [y.call for y in found[:i]]]


@operator("softmax-before-cross-entropy")
def softmax_ahead_of_loss(source: Source, strength: float) -> Iterator[Change]:
    for loss in all_losses(source, "classes"):
        yield one(source.wrap(loss.prediction, "torch.softmax(", ", dim=-1)"))


@operator("softmax-before-cross-entropy")
def softmax_in_model(source: Source, strength: float) -> Iterator[Change]:
    """In the return of the module's forward, or at the end of the sequence."""
    if not all_losses(source, "classes") and (
        steps(source) or not any(k in source.text for k in ("classes", "num_labels"))
    ):
        return
    found = forwards(source)
    if found:
        final = found[-1].body[-1]
        if isinstance(final, ast.Return) and isinstance(final.value, ast.Call):
            yield one(source.wrap(final.value, "torch.softmax(", ", dim=-1)"))
    for call in named(source, "Sequential"):
        tail = call.args[-1] if call.args else None
        if isinstance(tail, ast.Call) and last(tail) == "Linear":
            yield one(source.wrap(tail, "", ", nn.Softmax(dim=-1)"))


@operator("softmax-before-cross-entropy", accepted=("loss-expects-probabilities",))
def sigmoid_ahead_of_logits_loss(source: Source, strength: float) -> Iterator[Change]:
    """The binary form of the same mistake."""
    for loss in all_losses(source, "binary"):
        yield one(source.wrap(loss.prediction, "torch.sigmoid(", ")"))


@operator("loss-expects-probabilities")
def nll_of_logits(source: Source, strength: float) -> Iterator[Change]:
    for loss in all_losses(source, "classes"):
        if last(loss.call) == "cross_entropy":
            yield one(source.replace(loss.call.func, "torch.nn.functional.nll_loss"))
        else:
            for call in named(source, "CrossEntropyLoss"):
                if not call.args and not call.keywords:
                    yield one(source.replace(call, "nn.NLLLoss()"))


@operator("loss-expects-probabilities", ends=Ends.EITHER)
def bce_of_logits(source: Source, strength: float) -> Iterator[Change]:
    for loss in all_losses(source, "binary"):
        if last(loss.call) == "binary_cross_entropy_with_logits":
            name = dotted(loss.call.func).replace("_with_logits", "")
            yield one(source.replace(loss.call.func, name))
        else:
            for call in named(source, "BCEWithLogitsLoss"):
                if not call.args and not call.keywords:
                    yield one(source.replace(call, "nn.BCELoss()"))


@operator("wrong-loss-for-task", ends=Ends.EITHER)
def squared_error_on_class_index(source: Source, strength: float) -> Iterator[Change]:
    for loss in all_losses(source, "classes"):
        out, target = source.code(loss.prediction), source.code(loss.target)
        new = f"torch.nn.functional.mse_loss({out}.max(dim=-1).values, {target}.float())"
        yield one(source.replace(loss.call, new))


@operator("wrong-loss-for-task", ends=Ends.EITHER)
def cross_entropy_of_one_output(source: Source, strength: float) -> Iterator[Change]:
    for loss in all_losses(source, "values"):
        out, target = source.code(loss.prediction), source.code(loss.target)
        new = f"torch.nn.functional.cross_entropy({out}.reshape(-1, 1), {target}.reshape(-1, 1))"
        yield one(source.replace(loss.call, new))


@operator("wrong-loss-for-task", ends=Ends.EITHER)
def loss_maximised(source: Source, strength: float) -> Iterator[Change]:
    """A loss to be minimised is maximised."""
    for step in steps(source):
        if step.made is not None and all_losses(source, "classes", "values"):
            yield one(source.wrap(step.made.value, "-(", ")"))


@operator("target-shape-broadcast")
def squeeze_forgotten(source: Source, strength: float) -> Iterator[Change]:
    """(N, 1) against (N): the prediction loses its squeeze, or the target gains one."""
    for loss in all_losses(source, "values"):
        named_as = {dotted(loss.prediction)} - {""}
        places = [loss.prediction]
        for node in source.nodes:
            if isinstance(node, ast.Assign) and {dotted(t) for t in node.targets} & named_as:
                places.append(node.value)
        for place in places:
            if isinstance(place, ast.Call) and last(place) in ("squeeze", "flatten", "view"):
                assert isinstance(place.func, ast.Attribute)
                if _is_in_training(source, place):
                    yield one(source.replace(place, source.code(place.func.value)))


def _is_in_training(source: Source, node: ast.AST) -> bool:
    return any(source.statement(node) in s.block for s in steps(source))


@operator("target-shape-broadcast")
def target_flattened(source: Source, strength: float) -> Iterator[Change]:
    for loss in all_losses(source, "values"):
        if "squeeze" not in source.text and "flatten" not in source.code(loss.prediction):
            yield one(source.wrap(loss.target, "", ".flatten()"))


@operator("class-collapse", accepted=("class-imbalance",), strengths=(100, 1e4))
def one_class_outweighs(source: Source, strength: float) -> Iterator[Change]:
    """A class weight that makes one class the only one worth predicting."""
    for loss in all_losses(source, "classes"):
        out = source.code(loss.prediction)
        weight = f"torch.tensor([{strength:g}] + [1.0] * ({out}.shape[-1] - 1))"
        target = source.code(loss.target)
        new = f"torch.nn.functional.cross_entropy({out}, {target}, weight={weight})"
        yield one(source.replace(loss.call, new))


@operator("unstable-operation", strengths=(1, 30))
def logarithm_of_softmax(source: Source, strength: float) -> Iterator[Change]:
    """Cross-entropy by hand: log of a probability that underflows to zero."""
    for loss in all_losses(source, "classes"):
        out, target = source.code(loss.prediction), source.code(loss.target)
        times = f"{strength:g} * " if strength != 1 else ""
        chosen = f"torch.softmax({times}{out}, dim=-1).gather(-1, {target}.unsqueeze(-1))"
        yield one(source.replace(loss.call, f"-torch.log({chosen}).mean()"))


@operator("unstable-operation")
def logarithm_of_sigmoid(source: Source, strength: float) -> Iterator[Change]:
    for loss in all_losses(source, "binary"):
        out, target = source.code(loss.prediction), source.code(loss.target)
        p = f"torch.sigmoid(8 * ({out}))"
        new = f"-({target} * torch.log({p}) + (1 - {target}) * torch.log(1 - {p})).mean()"
        yield one(source.replace(loss.call, new))
