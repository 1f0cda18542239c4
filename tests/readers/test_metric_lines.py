"""A metric line of any form is read right or not at all."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from traindx.model.metric_names import kind_of
from traindx.model.run import Run
from traindx.readers.formats.console.reader import read

NAMES = {
    "loss": "loss/train", "train_loss": "loss/train", "Train Loss": "loss/train",
    "val_loss": "loss/val", "Validation loss": "loss/val", "acc": "accuracy/train",
    "val_acc": "accuracy/val", "lr": "lr", "grad_norm": "grad_norm", "reward": "reward/train",
}  # fmt: skip
PREFIXES = (
    "", "2024-05-01 10:00:0{i},123 - INFO - ", "[rank0]: ", "[2024-05-01 10:00:0{i}] ",
    "INFO:root:", "\x1b[32m", "I0501 10:00:0{i}.123 77 train.py:12] ", "(Worker pid=12) ",
)  # fmt: skip
COUNTERS = ("step {i}", "Step: {i}", "iter {i}/90", "[step {i}]", "step={i}", "global_step: {i}")
BINDINGS = (": ", "=", " = ", ":", " ", ":\t")
GAPS = (", ", " | ", "  ", " - ", "\t")
NUMBERS = ("{v:.4f}", "{v:.3e}", "{v}", "{v:.2E}", "\x1b[1m{v:.4f}\x1b[0m", "tensor({v:.4f})")
TAILS = ("", " ({m:.4f})", "\x1b[0m", " [1.2s]", " (best 0.1)")


@dataclass(frozen=True)
class Form:
    """How a program prints its metrics."""

    prefix: str
    counter: str
    gap: str
    binding: str
    number: str
    tail: str
    ending: str

    def line(self, i: int, told: dict[str, float]) -> str:
        parts = [self.counter.format(i=i)]
        for name, value in told.items():
            tail = self.tail.format(m=value + 7.0)
            parts.append(name + self.binding + self.number.format(v=value) + tail)
        return self.prefix.format(i=i) + self.gap.join(parts) + self.ending


forms = st.builds(
    Form,
    st.sampled_from(PREFIXES),
    st.sampled_from(COUNTERS),
    st.sampled_from(GAPS),
    st.sampled_from(BINDINGS),
    st.sampled_from(NUMBERS),
    st.sampled_from(TAILS),
    st.sampled_from(("\n", "\r\n", "\r")),
)
values = st.floats(0.001, 99.0).map(lambda v: round(v, 4))
names = st.lists(st.sampled_from(sorted(NAMES)), min_size=1, max_size=4, unique_by=NAMES.get)


def _read(text: str) -> Run:
    with TemporaryDirectory() as folder:
        path = Path(folder, "train.log")
        path.write_bytes(text.encode())
        return read(path)


@settings(max_examples=300, deadline=None)
@given(forms, names, st.lists(st.tuples(values, values, values, values), min_size=3, max_size=6))
def test_right_or_not_at_all(
    form: Form, told: list[str], rows: list[tuple[float, float, float, float]]
) -> None:
    lines = [form.line(i, dict(zip(told, row, strict=False))) for i, row in enumerate(rows, 1)]
    run = _read("".join(lines))
    # "validation loss: 0.4, acc: 0.9" may mean the accuracy of validation
    kinds = {kind_of(NAMES[n]) for n in told}
    strange = {n for n in set(run.series) & set(NAMES.values()) if kind_of(n) not in kinds}
    assert not strange, lines
    for k, name in enumerate(told):
        series = run.series.get(NAMES[name])
        if series is None:
            continue  # silence is allowed, a wrong number is not
        own = [row[k] for row in rows]
        # beside the value of an evaluation stands the mean of all its batches
        near = [own, [v + 7.0 for v in own]] if "{m" in form.tail else [own]
        found = [float(v) for v in series.values]
        assert any(_are_equal(found, wanted, form) for wanted in near), (lines, found)


def _are_equal(found: list[float], wanted: list[float], form: Form) -> bool:
    """Compare as printed; a bar that is refreshed shows what repeats once."""
    shown = [float(f"{w:.2e}") if "e" in form.number.lower() else w for w in wanted]
    if form.ending == "\r":
        return all(any(math.isclose(f, w, rel_tol=0.01) for w in shown) for f in found)
    pairs = zip(found, shown, strict=False)
    return len(found) == len(shown) and all(math.isclose(f, w, rel_tol=0.01) for f, w in pairs)


def test_most_forms_are_read() -> None:
    """Silence is allowed, and rare."""
    missed = []
    for prefix in PREFIXES:
        for binding in BINDINGS[:4]:
            for gap in GAPS:
                form = Form(prefix, "step {i}", gap, binding, "{v:.4f}", "", "\n")
                lines = [form.line(i, {"loss": 9.0 / i, "val_acc": 0.1 * i}) for i in (1, 2, 3)]
                run = _read("".join(lines))
                if not {"loss/train", "accuracy/val"} <= set(run.series):
                    missed.append((prefix, binding, gap))
    assert not missed


def test_thousands_and_percent_are_values(tmp_path: Path) -> None:
    text = "".join(f"step {i}: loss: {i},234.5 acc: {60 + i}.5%\n" for i in (1, 2, 3))
    run = _read(text)
    assert run.series["loss/train"].values.tolist() == [1234.5, 2234.5, 3234.5]
    assert run.series["accuracy/train"].values.tolist() == [61.5, 62.5, 63.5]


def test_a_decimal_comma_is_a_fraction_or_nothing(tmp_path: Path) -> None:
    run = _read("".join(f"Epoch {i} loss: 0,{i}5 acc: 0,{i}1\n" for i in (1, 2, 3)))
    for name, own in (("loss/train", [0.15, 0.25, 0.35]), ("accuracy/train", [0.11, 0.21, 0.31])):
        if name in run.series:
            assert run.series[name].values.tolist() == own
