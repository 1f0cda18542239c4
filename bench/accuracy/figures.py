"""The figures of the report, as SVG that stands in the page itself."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

from bench.accuracy.calibration import Bin
from bench.accuracy.scores import Score, interval

INK, RIGHT, WRONG, QUIET = "#222222", "#2a7f62", "#c0392b", "#b8b8b8"


def reliability(title: str, groups: Sequence[Bin]) -> str:
    """Draw stated confidence against the share that was right; a dot's size is its count."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(4.2, 4.0))
    axes.plot([0, 1], [0, 1], color=QUIET, linestyle="--", linewidth=1)
    sizes = [20 + 6 * b.count**0.8 for b in groups]
    axes.scatter([b.stated for b in groups], [b.right for b in groups], s=sizes, color=RIGHT)
    for b in groups:
        axes.annotate(str(b.count), (b.stated, b.right), fontsize=7, color=INK)
    axes.set(xlim=(0, 1.02), ylim=(-0.02, 1.04), xlabel="stated confidence", ylabel="share right")
    axes.set_title(title, fontsize=10)
    return _svg(figure)


def by_family(title: str, groups: Mapping[str, Score]) -> str:
    """Draw, for each family of causes, how often the first cause is right, with its interval."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    rows = [(name, s) for name, s in groups.items() if s.faulty]
    figure, axes = plt.subplots(figsize=(6.4, 0.32 * len(rows) + 1.0))
    for y, (_, s) in enumerate(reversed(rows)):
        low, high = interval(s.first, s.faulty)
        axes.barh(y, s.first / s.faulty, color=RIGHT, height=0.6)
        axes.plot([low, high], [y, y], color=INK, linewidth=1)
        axes.text(1.02, y, f"{s.first}/{s.faulty}", va="center", fontsize=8)
    axes.set_yticks(range(len(rows)), [name for name, _ in reversed(rows)], fontsize=8)
    axes.set(xlim=(0, 1), xlabel="first cause right")
    axes.set_title(title, fontsize=10)
    return _svg(figure)


def _svg(figure: object) -> str:
    from matplotlib import pyplot as plt

    made = io.StringIO()
    figure.savefig(made, format="svg", bbox_inches="tight", metadata={"Date": None})  # type: ignore[attr-defined]
    plt.close(figure)
    text = made.getvalue()
    return text[text.index("<svg") :]
