"""Operations on signals and pairs: frames, spectra, differences, distances."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from traindx.analysis.program.shapes import rearrangement
from traindx.analysis.program.shapes.sizes import Dim, floor, is_dim
from traindx.analysis.program.shapes.values import Shape, ShapedTensor, Value
from traindx.analysis.program.shapes.windows import Symbols


class Given(Protocol):
    """The arguments of a call, by position or name."""

    def get(self, position: int, name: str, default: Value = None) -> Value: ...

    def tensor(self, position: int = 0, name: str = "input") -> ShapedTensor: ...


def _closed(given: Given) -> tuple[Dim, ...] | None:
    shape = given.tensor().shape
    return None if shape.is_open or not shape.sizes else shape.sizes


def _stft(given: Given, symbols: Symbols) -> Value:
    """A short-time Fourier transform: bins and frames in the place of samples."""
    sizes, n_fft = _closed(given), given.get(1, "n_fft")
    hop = given.get(2, "hop_length")
    hop = floor(n_fft, 4) if hop is None and is_dim(n_fft) else hop
    is_known = is_dim(n_fft) and is_dim(hop) and given.get(5, "center", True) is True
    if sizes is None or not is_known or not is_dim(n_fft) or not is_dim(hop):
        return ShapedTensor()
    is_complex = given.get(9, "return_complex", None) is True
    bins = floor(n_fft, 2) + 1 if given.get(8, "onesided", True) is True else n_fft
    frames = floor(sizes[-1], hop) + 1  # half a window is added at both ends
    pair = () if is_complex else (2,)
    return ShapedTensor(Shape((*sizes[:-1], bins, frames, *pair)))


def _rfft(given: Given, symbols: Symbols) -> Value:
    sizes, count = _closed(given), given.get(1, "n")
    if sizes is None or given.get(2, "dim", -1) != -1:
        return ShapedTensor()
    length = count if is_dim(count) else sizes[-1]
    return ShapedTensor(Shape((*sizes[:-1], floor(length, 2) + 1)))


def _diff(given: Given, symbols: Symbols) -> Value:
    sizes, dim = _closed(given), given.get(2, "dim", -1)
    at = None if sizes is None else rearrangement.position(dim, len(sizes))
    times = given.get(1, "n", 1)
    if sizes is None or at is None or not isinstance(times, int):
        return ShapedTensor()
    return ShapedTensor(Shape((*sizes[:at], sizes[at] - times, *sizes[at + 1 :])))


def _window(given: Given, symbols: Symbols) -> Value:
    length = given.get(0, "window_length")
    return ShapedTensor(Shape((length if is_dim(length) else symbols.new(),)))


def _cdist(given: Given, symbols: Symbols) -> Value:
    first, second = given.tensor(0, "x1").shape, given.tensor(1, "x2").shape
    if first.is_open or second.is_open or min(len(first.sizes), len(second.sizes)) < 2:
        return ShapedTensor()
    return ShapedTensor(Shape((*first.sizes[:-1], second.sizes[-2])))


def _outer(given: Given, symbols: Symbols) -> Value:
    first, second = given.tensor().shape, given.tensor(1, "vec2").shape
    if first.rank != 1 or second.rank != 1:
        return ShapedTensor()
    return ShapedTensor(Shape((first.sizes[0], second.sizes[0])))


def _moved(given: Given, symbols: Symbols) -> Value:
    """`movedim` of one dimension."""
    sizes = _closed(given)
    if sizes is None:
        return ShapedTensor()
    source = rearrangement.position(given.get(1, "source"), len(sizes))
    target = rearrangement.position(given.get(2, "destination"), len(sizes))
    if source is None or target is None:
        return ShapedTensor()
    rest = [*sizes[:source], *sizes[source + 1 :]]
    rest.insert(target, sizes[source])
    return ShapedTensor(Shape(tuple(rest)))


SPECTRA: dict[str, Callable[[Given, Symbols], Value]] = {
    "stft": _stft,
    "rfft": _rfft,
    "diff": _diff,
    "cdist": _cdist,
    "outer": _outer,
    "movedim": _moved,
    "moveaxis": _moved,
    **dict.fromkeys(("hann_window", "hamming_window", "blackman_window"), _window),
}
