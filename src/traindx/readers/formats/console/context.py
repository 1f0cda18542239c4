"""Names that mean something only beside the others of their line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from traindx.model.metric_names import canonical, kind_of
from traindx.readers.formats.console.plan import DIGIT, Field

# what pix2pix, CycleGAN and their many kin print: losses by their bare names
_PIX2PIX = re.compile(r"\s*\(epoch: 0, iters: 0, time: 0")
_CAFFE = re.compile(r"\] Iteration 0(?: \([^)]*\))?, loss = ")
_PAIRS = (
    frozenset({"d", "g"}),
    frozenset({"disc", "gen"}),
    frozenset({"discriminator", "generator"}),
)  # of networks that play against each other
_SUMS = frozenset({"total", "sum", "overall"})


def in_context(fields: Sequence[Field], text: str) -> tuple[Field, ...]:
    """Return the fields of a line with the names that they have beside each other."""
    names = {f.name.lower() for f in fields}
    kinds = {kind_of(_canonical(f)) for f in fields}
    pair = next((p for p in _PAIRS if p <= names), frozenset())
    is_pix2pix = _PIX2PIX.match(text) is not None
    splits = {f.phase for f in fields if f.name == "score"}
    named = []
    for made in fields:
        name = made.name.lower()
        if name == "score" and made.phase and len(splits) < 2:
            continue  # one number beside a loss may be anything
        if (name == "loss" and _CAFFE.search(text)) or (
            name in _SUMS and "loss" not in kinds and _is_fraction(made)
        ):  # its net outputs are the terms, weighted
            named.append(replace(made, name="total loss"))
        elif name in pair or (is_pix2pix and _is_fraction(made) and _is_unknown(made)):
            named.append(replace(made, name=f"{made.name} loss"))
        else:
            named.append(made)
    return tuple(named)


def _canonical(made: Field) -> str:
    return canonical(made.name.replace(DIGIT, "0"))


def _is_unknown(made: Field) -> bool:
    return _canonical(made).startswith("other/")


def _is_fraction(made: Field) -> bool:
    return made.value.fraction is not None or made.value.special is not None
