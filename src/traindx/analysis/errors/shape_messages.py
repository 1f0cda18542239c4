"""The sizes in torch's shape errors, in the wordings of torch 1.x and 2.x."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from traindx.analysis.errors.culprits import shape_of

_SHAPE = r"(?:torch\.Size\()?[\[(]([\d, ]*)[\])]\)?"


@dataclass(frozen=True, slots=True)
class SizeError:
    """What a message says: its kind, the numbers in it, and their meaning in a sentence."""

    kind: str
    claim: str
    expected: int | None = None
    got: int | None = None
    shape: tuple[int, ...] = ()
    hint: str = ""


Reading = Callable[["re.Match[str]"], SizeError]


def read(message: str) -> SizeError | None:
    """Return what a message says about sizes; None where it is another error."""
    for pattern, reading in READINGS:
        found = pattern.search(message)
        if found is not None:
            return reading(found)
    return None


def _broadcast(found: re.Match[str]) -> SizeError:
    a, b, at = int(found[1]), int(found[2]), found[3]
    claim = f"Tensors with {a} and {b} elements in dimension {at} are combined elementwise"
    hint = "sizes must be equal, or one of them 1"
    if abs(a - b) == 1:
        hint += "; a difference of one often comes from an odd size that was halved and doubled"
    return SizeError("broadcast", claim, a, b, hint=hint)


def _concat(found: re.Match[str]) -> SizeError:
    at, wanted, got, which = found[1], int(found[2]), int(found[3]), found[4]
    claim = (
        f"Tensors are concatenated along dimension {at}, but another dimension differs: {wanted} "
        f"in the first, {got} in tensor number {which}"
    )
    hint = "only the concatenated dimension may differ"
    if abs(wanted - got) == 1:
        hint += (
            f"; {wanted} and {got} are one apart: an odd size was halved and doubled again, so pad "
            "or crop to the size of the partner, or use inputs whose sides divide by every stride"
        )
    return SizeError("concat", claim, wanted, got, hint=hint)


def _old_concat(found: re.Match[str]) -> SizeError:
    claim = (
        f"Tensors are concatenated along dimension {found[1]}, but another dimension differs: "
        f"{found[2]} and {found[3]}"
    )
    hint = "only the concatenated dimension may differ"
    return SizeError("concat", claim, int(found[2]), int(found[3]), hint=hint)


def _view(found: re.Match[str]) -> SizeError:
    wanted = tuple(int(n) for n in re.findall(r"-?\d+", found[1]))
    total = int(found[2])
    known = 1
    for size in wanted:
        known *= size if size > 0 else 1
    text = f"[{', '.join(map(str, wanted))}]"
    claim = f"A tensor of {total} elements is viewed as {text}"
    if -1 in wanted:
        hint = f"{total} / {known} = {total / known:.4g} is not a whole number"
    else:
        hint = f"{text} has {known} elements"
    lead = wanted[0] if wanted else 0
    if lead > 1 and total % lead == 0 and known != total:
        hint += f"; with {lead} rows there are {total} / {lead} = {total // lead} per row"
    return SizeError("view", claim, known, total, wanted, hint)


def _stack(found: re.Match[str]) -> SizeError:
    first, other = shape_of(found[1]), shape_of(found[3])
    claim = (
        f"Samples of different shapes are stacked into one batch: {_text(first)} at entry "
        f"{found[2]}, {_text(other)} at entry {found[4]}"
    )
    is_image = len(first) == len(other) == 3 and first[1:] == other[1:]
    kind = "stack-channels" if is_image else "stack"
    return SizeError(kind, claim, None, None, other, _stack_hint(first, other))


def _stack_hint(first: tuple[int, ...], other: tuple[int, ...]) -> str:
    if len(first) == len(other) == 3 and first[1:] == other[1:]:
        names = {1: "grey", 3: "RGB", 4: "RGBA", 2: "grey with alpha"}
        a, b = names.get(first[0], str(first[0])), names.get(other[0], str(other[0]))
        return f'{a} and {b} images are mixed: open them all with `.convert("RGB")`'
    if len(first) == len(other) == 3 and first[0] == other[0]:
        return "images of different sizes: resize or crop them to one size in the transform"
    if len(first) == len(other) and first[1:] == other[1:]:
        return "sequences of different lengths: pad them in a `collate_fn`, as with `pad_sequence`"
    return "the dataset yields samples of different shapes: make them equal, or write a collate_fn"


def _batch(found: re.Match[str]) -> SizeError:
    got, wanted = int(found[1]), int(found[2])
    claim = f"The loss gets {got} predictions for {wanted} targets"
    hint = "the first dimensions of prediction and target must be equal"
    if wanted and got % wanted == 0 and got > wanted:
        hint = (
            f"{got} = {wanted}·{got // wanted}: a view or flatten moved {got // wanted} parts of "
            f"each sample into the batch; keep the batch with `x.view(x.size(0), -1)` or "
            f"`torch.flatten(x, 1)`"
        )
    elif got and wanted % got == 0:
        hint = (
            f"{wanted} = {got}·{wanted // got}: the targets are flattened, the predictions are not"
        )
    return SizeError("batch", claim, wanted, got, hint=hint)


def _target(found: re.Match[str]) -> SizeError:
    target, given = shape_of(found[1]), shape_of(found[2])
    claim = f"The loss gets predictions of {_text(given)} and targets of {_text(target)}"
    hint = "both must have one shape"
    if _without_ones(target) == _without_ones(given):
        hint = (
            f"they differ in a dimension of size 1: `output.squeeze(-1)` or "
            f"`target.{'unsqueeze(1)' if len(target) < len(given) else 'squeeze(-1)'}` makes them "
            "equal"
        )
    elif len(target) < len(given) and given[: len(target)] == target:
        hint = (
            f"class indices {_text(target)} go with `nn.CrossEntropyLoss`; for a loss per class "
            f"turn them into {_text(given)} with `F.one_hot(target, {given[-1]}).float()`"
        )
    return SizeError("target", claim, None, None, target, hint)


def _without_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(s for s in shape if s != 1)


def _spatial(found: re.Match[str]) -> SizeError:
    target, given = shape_of(found[1]), shape_of(found[2])
    claim = f"The loss gets a prediction of {_text(given)} and a target map of {_text(target)}"
    hint = "height and width must be equal: resize the prediction with `F.interpolate`, size="
    return SizeError("spatial", claim, None, None, given, f"{hint}{_text(target[-2:])}")


def _dimension(found: re.Match[str]) -> SizeError:
    low, high, got = int(found[1]), int(found[2]), int(found[3])
    rank = high + 1
    claim = f"Dimension {got} does not exist: the tensor has {rank}, numbered {low} to {high}"
    hint = (
        "the tensor lost a dimension before that line, or has no batch dimension; print its shape"
    )
    return SizeError("dimension", claim, rank, got, hint=hint)


def _rank(found: re.Match[str]) -> SizeError:
    wanted, layer, shape = found[1], found[2], shape_of(found[3])
    claim = f"{layer} takes {wanted} input and receives {len(shape)}D: {_text(shape)}"
    return SizeError("rank", claim, None, len(shape), shape, _rank_hint(layer, shape))


def _rank_hint(layer: str, shape: tuple[int, ...]) -> str:
    size = 1
    for part in shape:
        size *= part
    side = round(shape[-1] ** 0.5) if shape else 0
    if "2d" in layer.lower() and side > 1 and side * side == shape[-1]:
        return (
            f"{shape[-1]} = {side}×{side}: the images are flattened; reshape them with "
            f"`x.view(-1, 1, {side}, {side})`, or drop the flatten"
        )
    if len(shape) == 2:
        return "the input is (batch, features): a dimension is missing, or the layer is for images"
    return "a dimension is missing or too many; `unsqueeze` adds one"


def _features(found: re.Match[str]) -> SizeError:
    wanted, got = int(found[1]), int(found[2])
    claim = f"A recurrent layer takes {wanted} features per step and receives {got}"
    return SizeError("features", claim, wanted, got, hint="the last dimension is the features")


def _hidden(found: re.Match[str]) -> SizeError:
    wanted, got = shape_of(found[1]), shape_of(found[2])
    claim = f"A recurrent layer expects a hidden state of {_text(wanted)} and gets {_text(got)}"
    hint = "the order is (layers, batch, features); create or cut the state for every batch"
    if wanted[:1] == got[:1] and wanted[2:] == got[2:]:
        hint = "the batch size differs from the state's; the last batch of an epoch is smaller"
    return SizeError("hidden", claim, None, None, got, hint)


def _normalized(found: re.Match[str]) -> SizeError:
    wanted, shape = shape_of(found[1]), shape_of(found[2])
    claim = f"A layer norm is built for {_text(wanted)} and receives {_text(shape)}"
    hint = "it normalises the last dimensions, which must be equal"
    return SizeError("features", claim, wanted[-1] if wanted else None,
                     shape[-1] if shape else None, shape, hint)  # fmt: skip


def _embedding(found: re.Match[str]) -> SizeError:
    wanted, got = int(found[1]), int(found[2])
    claim = f"An attention layer is built for {wanted} features and receives {got}"
    return SizeError("features", claim, wanted, got, hint="the last dimension is the features")


def _expand(found: re.Match[str]) -> SizeError:
    wanted, own, at = int(found[1]), int(found[2]), found[3]
    claim = f"A tensor with {own} elements in dimension {at} is expanded to {wanted}"
    return SizeError("broadcast", claim, own, wanted, hint="only a size of 1 can be expanded")


def _ranks(found: re.Match[str]) -> SizeError:
    claim = f"Tensors with {found[1]} and {found[2]} dimensions are concatenated"
    hint = "give both the same number of dimensions with `unsqueeze` or `flatten`"
    return SizeError("concat", claim, hint=hint)


def _map_sizes(found: re.Match[str]) -> SizeError:
    given, target = shape_of(found[1]), shape_of(found[2])
    claim = f"The loss gets a prediction of {_text(given)} and a target map of {_text(target)}"
    hint = "height and width must be equal: resize the prediction with `F.interpolate`, size="
    return SizeError("spatial", claim, None, None, given, f"{hint}{_text(target[-2:])}")


def _multi_target(found: re.Match[str]) -> SizeError:
    claim = "The loss takes 1D class indices, but the targets have more dimensions"
    hint = (
        "`target.squeeze(1)` if the extra dimension has size 1; `target.argmax(1)` if they are "
        "one-hot; a loss for several labels per sample is `nn.BCEWithLogitsLoss`"
    )
    return SizeError("target", claim, hint=hint)


def _target_size(found: re.Match[str]) -> SizeError:
    wanted, got = shape_of(found[1]), shape_of(found[2])
    claim = (
        f"The loss takes targets of {_text(wanted)} for these predictions, but gets {_text(got)}"
    )
    hint = "predictions are [N, classes, …]: the second dimension is the classes, as by `transpose`"
    return SizeError("target", claim, None, None, got, hint)


def _index_rank(found: re.Match[str]) -> SizeError:
    claim = "A gather or scatter gets an index with another number of dimensions than its tensor"
    hint = "`index.unsqueeze(1)` makes a column of it, as for one action per row"
    return SizeError("index", claim, hint=hint)


def _attention_mask(found: re.Match[str]) -> SizeError:
    got, wanted = shape_of(found[1]), shape_of(found[2])
    claim = f"The attention mask has shape {_text(got)}, expected {_text(wanted)}"
    hint = "the order is (queries, keys); if these are the batch, set `batch_first=True`"
    return SizeError("mask", claim, None, None, got, hint)


def _map_target(found: re.Match[str]) -> SizeError:
    claim = f"The loss takes target maps [N, H, W], but the targets have {found[1]} dimensions"
    hint = "drop the channel dimension with `target.squeeze(1)`"
    return SizeError("target", claim, hint=hint)


def _window(found: re.Match[str]) -> SizeError:
    claim = f"A kernel of {found[2]} is larger than its input of {found[1]}"
    hint = "the image has shrunk too far: fewer strides or poolings, padding, or larger inputs"
    return SizeError("window", claim, hint=hint)


def _too_small(found: re.Match[str]) -> SizeError:
    claim = f"Pooling an input of ({found[1]}) gives an empty output ({found[2]})"
    hint = "the image has shrunk too far: fewer strides or poolings, padding, or larger inputs"
    return SizeError("window", claim, hint=hint)


def _text(shape: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, shape))}]"


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.DOTALL)


def _square(found: re.Match[str]) -> SizeError:
    rows, columns = int(found[1]), int(found[2])
    claim = f"A square matrix is wanted, and the matrices are {rows} by {columns}"
    return SizeError("square", claim, rows, columns, hint="print the shape of what is passed")


def _indices(found: re.Match[str]) -> SizeError:
    claim = f"A tensor of {found[1]} dimensions is indexed with more than that"
    return SizeError("indices", claim, int(found[1]), hint="print the shape before it is indexed")


READINGS: tuple[tuple[re.Pattern[str], Reading], ...] = (
    (
        _compiled(
            r"[Tt]he size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at "
            r"non-singleton dimension (\d+)"
        ),
        _broadcast,
    ),
    (
        _compiled(
            r"Sizes of tensors must match except in dimension (\d+)\. Expected size (\d+) but got "
            r"size (\d+) for tensor number (\d+)"
        ),
        _concat,
    ),
    (
        _compiled(
            r"Sizes of tensors must match except in dimension (\d+)\. Got (\d+) and (\d+)"
        ),
        _old_concat,
    ),
    (
        _compiled(
            r"must be batches of square matrices, but they are (\d+) by (\d+)"
        ),
        _square,
    ),
    (_compiled(r"too many indices for tensor of dimension (\d+)"), _indices),
    (_compiled(r"shape '?\[([-\d, ]+)\]'? is invalid for input of size (\d+)"), _view),
    (
        _compiled(
            r"stack expects each tensor to be equal size, but got \[([\d, ]*)\] at entry (\d+) and "
            r"\[([\d, ]*)\] at entry (\d+)"
        ),
        _stack,
    ),
    (
        _compiled(
            r"Expected input batch_size \((\d+)\) to match target batch_size \((\d+)\)"
        ),
        _batch,
    ),
    (
        _compiled(
            rf"Target size \({_SHAPE}\) must be the same as input size \({_SHAPE}\)"
        ),
        _target,
    ),
    (
        _compiled(
            rf"Using a target size \({_SHAPE}\) that is different to the input size \({_SHAPE}\)"
            r" is deprecated"
        ),
        _target,
    ),
    (
        _compiled(
            r"(?:input and target batch or spatial sizes don't match|size mismatch).{0,20}target "
            r"\[?([\dx, ]+)\]?, ?input \[?([\dx, ]+)\]?"
        ),
        _spatial,
    ),
    (
        _compiled(r"size mismatch \(got input: \[([\d, ]+)\] ?, target: \[([\d, ]+)\]"),
        _map_sizes,
    ),
    (
        _compiled(
            r"The expanded size of the tensor \((\d+)\) must match the existing size \((\d+)\) at "
            r"non-singleton dimension (\d+)"
        ),
        _expand,
    ),
    (_compiled(r"Tensors must have same number of dimensions: got (\d+) and (\d+)"), _ranks),
    (_compiled(r"1D target tensor expected, multi-target not supported"), _multi_target),
    (_compiled(r"multi-target not supported at "), _multi_target),
    (
        _compiled(
            r"Expected target size \(?\[?([\d, ]+)[\])], got (?:torch\.Size\()?\[([\d, ]*)\]"
        ),
        _target_size,
    ),
    (_compiled(r"Index tensor must have the same number of dimensions as"), _index_rank),
    (
        _compiled(
            rf"shape of the [23]D attn_mask is {_SHAPE}, but should be \(([\d, ]+)\)"
        ),
        _attention_mask,
    ),
    (_compiled(r"only batches of spatial targets supported.*dimension: (\d+)"), _map_target),
    (
        _compiled(
            r"Calculated padded input size per channel: \(([\d x]+)\)\. Kernel size: "
            r"\(([\d x]+)\)\. Kernel size can't be greater"
        ),
        _window,
    ),
    (
        _compiled(
            r"Given input size: \(([\dx]+)\)\. Calculated output size: \(([-\dx]+)\)\. Output "
            r"size is too small"
        ),
        _too_small,
    ),
    (_compiled(r"expecting embedding dimension of (\d+), but got (\d+)"), _embedding),
    (
        _compiled(
            r"Dimension out of range \(expected to be in range of \[(-?\d+), (-?\d+)\], but got "
            r"(-?\d+)\)"
        ),
        _dimension,
    ),
    (
        _compiled(
            r"Expected (\d)D \(unbatched\) or \dD \(batched\) input to (\w+), but got input of "
            r"size: \[([\d, ]*)\]"
        ),
        _rank,
    ),
    (
        _compiled(r"Expected hidden(?:\[\d\])? size \(([\d, ]+)\), got \[([\d, ]+)\]"),
        _hidden,
    ),
    (
        _compiled(
            r"input\.size\(-1\) must be equal to input_size\. Expected (\d+), got (\d+)"
        ),
        _features,
    ),
    (
        _compiled(
            r"Given normalized_shape=\[([\d, ]+)\], expected input with shape \[\*[\d, ]*\], but "
            r"got input of size ?\[([\d, ]+)\]"
        ),
        _normalized,
    ),
)  # fmt: skip
