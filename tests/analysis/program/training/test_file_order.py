"""In which order files and labels stand."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.file_order import FileOrder, orders_of
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run


@pytest.mark.parametrize(
    ("files", "order"),
    [
        ("sorted(glob.glob('*.png'))", FileOrder.BY_TEXT),
        ("[f for f in sorted(os.listdir(root)) if f.endswith('.png')]", FileOrder.BY_TEXT),
        ("sorted(Path(root).iterdir(), key=number)", FileOrder.BY_KEY),
        ("natsort.natsorted(glob.glob('*.png'))", FileOrder.BY_KEY),
        ("list(Path(root).glob('*.png'))", FileOrder.NONE),
        (
            "sorted(csv.DictReader(open('labels.csv')), key=lambda r: int(r['id'][1:]))",
            FileOrder.BY_KEY,
        ),
        ("[int(row[1]) for row in csv.reader(open('labels.csv'))]", FileOrder.ROWS),
    ],
)
def test_the_order_of_a_list(files: str, order: FileOrder) -> None:
    text = "import csv, glob, os, natsort\nfrom pathlib import Path\n"
    story = program_of(make_run(sources={"t.py": f"{text}print({files})\n"})).stories[0]
    given = next(e.args[0] for e in story.events if e.name == "builtins.print")
    assert {o.order for o in orders_of(story, given)} == {order}


def test_a_list_that_is_sorted_in_place() -> None:
    text = "import glob\nfiles = glob.glob('*.png')\nfiles.sort()\nprint(files)\n"
    story = program_of(make_run(sources={"t.py": text})).stories[0]
    given = next(e.args[0] for e in story.events if e.name == "builtins.print")
    assert [o.order for o in orders_of(story, given)] == [FileOrder.BY_TEXT]
