"""Numbers that set how long, how wide and in which batches a program trains, found in its source."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

import pytest

from traindx.experiments.probes.source_changes import (
    NumberPatch,
    SourceText,
    longer,
    other_batches,
    sources_of,
    wider,
)
from traindx.experiments.sandbox import applied_patch

BODY = """
    loss = model(x).sum()
    loss.backward()
"""


def source(text: str, path: str = "/project/train.py") -> SourceText:
    made = textwrap.dedent(text)
    return SourceText(Path(path), made, ast.parse(made))


def patched(found: NumberPatch | None, given: SourceText, tmp_path: Path) -> str:
    assert found is not None
    copy = tmp_path / "train.py"
    copy.write_text(given.text)
    applied_patch.apply(found.patch, lambda _: [copy], lambda path, data: path.write_bytes(data))
    return copy.read_text()


LOOPS = {
    "a literal": (f"for epoch in range(5):{BODY}", "range(15)"),
    "a constant": (f"EPOCHS = 5\nfor epoch in range(EPOCHS):{BODY}", "EPOCHS = 15"),
    "a start": (f"EPOCHS = 5\nfor epoch in range(1, EPOCHS + 1):{BODY}", "EPOCHS = 15"),
    "tqdm": (f"N = 40\nfor i in tqdm(range(N)):{BODY}", "N = 120"),
    "an argument": (
        f'p.add_argument("--epochs", type=int, default=4)\nfor e in range(args.epochs):{BODY}',
        "default=12",
    ),
    "a dictionary": (
        f'cfg = {{"epochs": 6}}\nfor e in range(cfg["epochs"]):{BODY}',
        '"epochs": 18',
    ),
    "a default": (
        f"def fit(model, steps=20):\n  for s in range(steps):{BODY.replace('    ', '      ')}",
        "steps=60",
    ),
    "while": (f"LIMIT = 100\nstep = 0\nwhile step < LIMIT:{BODY}    step += 1\n", "LIMIT = 300"),
    "an inner function": (
        "def one():\n    loss.backward()\n\nfor epoch in range(7):\n    one()\n",
        "range(21)",
    ),
    "a length that is computed": (f"for e in range(len(plan)):{BODY}", "range((len(plan)) * 3)"),
    "a trainer": ("Trainer(max_epochs=2).fit(model)\n", "max_epochs=6"),
}


@pytest.mark.parametrize("name", LOOPS)
def test_the_outermost_training_loop_is_made_longer(name: str, tmp_path: Path) -> None:
    text, wanted = LOOPS[name]
    given = source(text)
    assert wanted in patched(longer([given], 3, []), given, tmp_path)


def test_a_number_that_the_command_sets_is_multiplied_at_the_loop(tmp_path: Path) -> None:
    text, _ = LOOPS["an argument"]
    given = source(text)
    made = patched(longer([given], 3, ["python", "train.py", "--epochs", "9"]), given, tmp_path)
    assert "range((args.epochs) * 3)" in made
    assert "default=4" in made


def test_a_loop_that_does_not_train_is_left_alone() -> None:
    assert longer([source("for i in range(10):\n    print(i)\n")], 3, []) is None


def test_batches_made_by_hand_are_scaled(tmp_path: Path) -> None:
    given = source("BATCH_SIZE = 8\nx = data[i : i + BATCH_SIZE]\n")
    assert "BATCH_SIZE = 32" in patched(other_batches([given], 4.0, []), given, tmp_path)
    assert other_batches([source("size = 8\n")], 4.0, []) is None


def test_small_hidden_layers_are_widened_together(tmp_path: Path) -> None:
    given = source(
        "net = nn.Sequential(nn.Linear(20, 3), nn.BatchNorm1d(3), nn.ReLU(), nn.Linear(3, 5))\n"
    )
    made = patched(wider([given], 4, []), given, tmp_path)
    assert "nn.Linear(20, 33), nn.BatchNorm1d(33), nn.ReLU(), nn.Linear(33, 5)" in made


def test_a_named_width_is_widened_and_a_large_one_is_not(tmp_path: Path) -> None:
    small = source("hidden = 4\nnet = Net(hidden)\n")
    assert "hidden = 32" in patched(wider([small], 4, []), small, tmp_path)
    assert wider([source("hidden = 256\nnet = Net(hidden)\n")], 4, []) is None


def test_imported_files_beside_the_script_are_read(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("from loop import fit\nfit()\n")
    (tmp_path / "loop.py").write_text("EPOCHS = 3\n")
    found = sources_of(["python", "train.py"], tmp_path)
    assert [s.path.name for s in found] == ["train.py", "loop.py"]
