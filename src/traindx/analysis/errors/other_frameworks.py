"""The sizes in the shape errors of JAX, Keras and TensorFlow."""

from __future__ import annotations

import re

from traindx.analysis.errors.shape_messages import Reading, SizeError


def read_other(message: str) -> SizeError | None:
    """Return what a message of another framework than torch says about sizes."""
    for pattern, reading in READINGS:
        found = pattern.search(message)
        if found is not None:
            return reading(found)
    return None


def _contraction(found: re.Match[str]) -> SizeError:
    claim = f"A product contracts dimensions of different sizes: {found[1]} and {found[2]}"
    hint = "the last dimension of the first must equal the first of the second; print both shapes"
    return SizeError("features", claim, hint=hint)


def _layer_input(found: re.Match[str]) -> SizeError:
    name, wanted, got = found[1], found[2], found[3]
    claim = f"The layer {name} takes an input of shape ({wanted}) and receives ({got})"
    hint = "None is the batch size; reshape the data, or build the layer with their `input_shape`"
    if wanted.count(",") == got.count(",") + 1:
        hint = "a dimension is missing, usually the batch; `np.expand_dims(x, 0)` adds it"
    return SizeError("features", claim, hint=hint)


def _layer_rank(found: re.Match[str]) -> SizeError:
    claim = f"The layer {found[1]} expects {found[2]} and receives {found[3]}"
    hint = "a dimension is missing or too many; print the input's shape"
    return SizeError("rank", claim, hint=hint)


def _tf_shapes(found: re.Match[str]) -> SizeError:
    claim = f"Tensors of shapes [{found[1]}] and [{found[2]}] cannot be broadcast"
    return SizeError("broadcast", claim, hint="sizes must be equal, or one of them 1")


def _jax_broadcast(found: re.Match[str]) -> SizeError:
    claim = f"Arrays of shapes ({found[2]}) and ({found[3]}) cannot be broadcast in {found[1]}"
    return SizeError("broadcast", claim, hint="sizes must be equal, or one of them 1")


READINGS: tuple[tuple[re.Pattern[str], Reading], ...] = (
    (
        re.compile(
            r"dot_general requires (?:contracting|lhs batch) dimensions (?:and rhs batch dimensions"
            r" )?to have the same shape, got ([\[(][\d, ]*[\])]) and ([\[(][\d, ]*[\])])"
        ),
        _contraction,
    ),
    (
        re.compile(r"(\w+) got incompatible shapes for broadcasting: \(([\d, ]*)\), \(([\d, ]*)\)"),
        _jax_broadcast,
    ),
    (
        re.compile(
            r"Input \d+ (?:of layer |is incompatible with (?:the )?layer )\"?([\w.]+)\"?(?: is "
            r"incompatible with the layer)?: expected shape=\(([\w, ]*)\), found shape="
            r"(?:\(|\[)([\w, ]*)(?:\)|\])"
        ),
        _layer_input,
    ),
    (
        re.compile(
            r"Input \d+ (?:of layer |is incompatible with (?:the )?layer )\"?([\w.]+)\"?(?: is "
            r"incompatible with the layer)?:? expected ((?:min_|max_)?ndim=\d+"
            r"|axis -?\d+[\w ]{0,40}value \d+),? (?:found|but received) (.{1,120}?)(?:\.|$)"
        ),
        _layer_rank,
    ),
    (
        re.compile(r"[Ii]ncompatible shapes: \[([\d,]*)\] vs\. \[([\d,]*)\]"),
        _tf_shapes,
    ),
)
