"""Types, devices, indices, views and names."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bench.corpus.anatomy import building, forwards, layers, losses, model_calls, optimizers, steps
from bench.corpus.operators import Change, crash, many, one
from bench.corpus.operators.optimisation_losses import all_losses
from bench.corpus.source import Source
from bench.corpus.syntax import dotted, keyword, last, named, targets


@crash("dtype-mismatch")
def inputs_in_double(source: Source, strength: float) -> Iterator[Change]:
    for call in named(source, "tensor", "as_tensor"):
        kind = keyword(call, "dtype")
        if kind is not None and last(kind) == "float32":
            yield one(source.replace(kind, "torch.float64"))
    for call in named(source, "float"):
        if isinstance(call.func, ast.Attribute) and not call.args:
            yield one(source.replace(call, f"{source.code(call.func.value)}.double()"))


@crash("dtype-mismatch")
def labels_as_floats(source: Source, strength: float) -> Iterator[Change]:
    for loss in all_losses(source, "classes"):
        yield one(source.wrap(loss.target, "", ".float()"))


@crash("dtype-mismatch")
def inputs_as_integers(source: Source, strength: float) -> Iterator[Change]:
    for step in steps(source):
        for call in model_calls(source, step)[:1]:
            if isinstance(call.args[0], ast.Name) and not layers(source, "Embedding"):
                yield one(source.wrap(call.args[0], "", ".long()"))


@crash("dtype-mismatch")
def tokens_as_floats(source: Source, strength: float) -> Iterator[Change]:
    for call in layers(source, "Embedding"):
        statement = source.statement(call)
        name = dotted(targets(statement)[0]) if targets(statement) else ""
        for use in source.calls():
            if name and dotted(use.func) == name and use.args:
                yield one(source.wrap(use.args[0], "", ".float()"))


@crash("index-out-of-range", accepted=("vocabulary-mismatch",))
def tokens_counted_from_one(source: Source, strength: float) -> Iterator[Change]:
    """The largest token lies beyond the table, which was made for tokens counted from zero."""
    for call in layers(source, "Embedding"):
        statement = source.statement(call)
        name = dotted(targets(statement)[0]) if targets(statement) else ""
        for use in source.calls():
            if name and dotted(use.func) == name and use.args:
                yield one(source.wrap(use.args[0], "", " + 1"))


@crash("index-out-of-range")
def gather_beyond_the_end(source: Source, strength: float) -> Iterator[Change]:
    for node in source.nodes:
        if isinstance(node, ast.Call) and last(node) == "randint" and len(node.args) >= 2:
            bound = node.args[-2]
            statement = source.statement(node)
            if "len(" in source.code(bound) and any(statement in s.block for s in steps(source)):
                yield one(source.wrap(bound, "", " + 500"))


@crash("label-out-of-range", accepted=("output-size-mismatch",))
def labels_counted_from_one(source: Source, strength: float) -> Iterator[Change]:
    """The model has outputs for labels from zero: the two do not fit, whichever is to blame."""
    for loss in all_losses(source, "classes"):
        if "arange" not in source.text or "cross_entropy" not in source.text:
            yield one(source.wrap(loss.target, "", " + 1"))


@crash("label-out-of-range")
def unknown_label_is_minus_one(source: Source, strength: float) -> Iterator[Change]:
    for loss in all_losses(source, "classes"):
        code = source.code(loss.target)
        if isinstance(loss.target, ast.Name):
            new = f"torch.where(torch.rand({code}.shape) < 0.05, -1, {code})"
            yield one(source.replace(loss.target, new))


@crash("non-contiguous-view")
def view_of_transposed(source: Source, strength: float) -> Iterator[Change]:
    for node in source.calls():
        if last(node) == "contiguous" and isinstance(node.func, ast.Attribute):
            yield one(source.replace(node, source.code(node.func.value)))
        if last(node) == "reshape" and isinstance(node.func, ast.Attribute):
            inner = node.func.value
            if "transpose" in source.code(inner) or "permute" in source.code(inner):
                yield one(source.replace(node.func, f"{source.code(inner)}.view"))


@crash("non-contiguous-view")
def logits_viewed_after_transpose(source: Source, strength: float) -> Iterator[Change]:
    for step in steps(source):
        for loss in losses(source, step):
            target = loss.target
            if isinstance(target, ast.Call) and last(target) in ("view", "reshape"):
                assert isinstance(target.func, ast.Attribute)
                inner = source.code(target.func.value)
                yield one(source.replace(target.func, f"{inner}.t().view"))


@crash("non-contiguous-view")
def flatten_as_view_of_permuted(source: Source, strength: float) -> Iterator[Change]:
    for forward in forwards(source):
        for node in ast.walk(forward):
            if not isinstance(node, ast.Call) or last(node) != "flatten":
                continue
            if isinstance(node.func, ast.Attribute) and dotted(node.func.value) != "torch":
                inner = source.code(node.func.value)
                new = f"{inner}.permute(0, 2, 3, 1).view({inner}.size(0), -1)"
                yield one(source.replace(node, new))


@crash("device-mismatch")
def model_left_on_meta_device(source: Source, strength: float) -> Iterator[Change]:
    """Built without memory, as large models are, and never filled."""
    for optimizer in optimizers(source):
        made = building(source, optimizer.model) if optimizer.model else None
        if made is not None and "\n" not in source.code(made):
            text = f'with torch.device("meta"):\n{source.indent(made)}    {source.code(made)}'
            yield one(source.replace(made, text))


@crash("device-mismatch")
def batch_left_on_meta_device(source: Source, strength: float) -> Iterator[Change]:
    for step in steps(source):
        for call in model_calls(source, step)[:1]:
            yield one(source.wrap(call.args[0], "", '.to("meta")'))


@crash("name-shadowed")
def criterion_overwritten(source: Source, strength: float) -> Iterator[Change]:
    """`loss = loss(out, y)`: the second call finds a tensor."""
    for step in steps(source):
        if step.made is None or not isinstance(step.made.value, ast.Call):
            continue
        name = step.made.value.func
        if isinstance(name, ast.Name) and "." not in step.loss and step.is_loop:
            edits = [
                source.replace(n, name.id)
                for s in step.block
                for n in ast.walk(s)
                if isinstance(n, ast.Name) and n.id == step.loss
            ]
            mine = next(e for e in edits if e.start == source.span(step.made)[0])
            yield Change(tuple(edits), mine)


@crash("name-shadowed")
def model_overwritten(source: Source, strength: float) -> Iterator[Change]:
    """`model = model(x)`: the second batch is given to a tensor."""
    for step in steps(source):
        for call in model_calls(source, step)[:1]:
            parent = source.parents[call]
            if not isinstance(parent, ast.Assign) or not isinstance(call.func, ast.Name):
                continue
            if len(targets(parent)) == 1 and isinstance(parent.targets[0], ast.Name):
                old = parent.targets[0].id
                edits = [
                    source.replace(n, call.func.id)
                    for s in step.block
                    for n in ast.walk(s)
                    if isinstance(n, ast.Name) and n.id == old
                ]
                mine = next(e for e in edits if e.start == source.span(parent)[0])
                if step.is_loop and call.func.id != "self":
                    yield Change(tuple(edits), mine)


@crash("version-mismatch", accepted=("api-misuse", "device-mismatch"))
def compiled_without_cuda(source: Source, strength: float) -> Iterator[Change]:
    """The installed torch has no CUDA: the versions do not fit the script."""
    for optimizer in optimizers(source):
        if optimizer.model and optimizer.model != "self":
            yield one(source.before(optimizer.statement, f"{optimizer.model}.cuda()"))


@crash("version-mismatch", accepted=("api-misuse",))
def numpy_alias_removed(source: Source, strength: float) -> Iterator[Change]:
    """`np.float` went with numpy 1.24."""
    for node in source.nodes:
        if isinstance(node, ast.Attribute) and dotted(node) == "np.float32":
            yield one(source.replace(node, "np.float"))


@crash("version-mismatch", accepted=("api-misuse",))
def torch_function_removed(source: Source, strength: float) -> Iterator[Change]:
    """`torch.symeig` and `torch.lu` went with torch 2: scripts for torch 1 still call them."""
    for optimizer in optimizers(source):
        if optimizer.model and optimizer.model != "self":
            m = optimizer.model
            lines = (
                f"gram = next({m}.parameters()).detach().flatten(1)",
                "spectrum, _ = torch.symeig(gram @ gram.T)",
            )
            at = source.before(optimizer.statement, *lines)
            yield many(at)
