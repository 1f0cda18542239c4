"""Lists that tensors are kept in, and whether anything is taken out of them."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.graphs import is_emptied
from traindx.analysis.program.training.hoards import kept_outputs
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run


@pytest.mark.parametrize(("line", "known"), [
    ("kept.clear()", True),
    ("del kept[:]", True),
    ("kept[:] = []", True),
    ("kept.pop(0)", True),
    ("kept.append(x)", False),
    ("del other[:]", False),
])  # fmt: skip
def test_what_is_taken_out_of_a_list(line: str, known: bool) -> None:
    text = f"import torch\nkept, other = [], []\nfor x in loader:\n    kept.append(x)\n    {line}\n"
    story = program_of(make_run(sources={"t.py": text})).stories[0]
    kept = next(a.value for a in story.execution.assignments if a.name == "kept")
    assert is_emptied(story, kept) is known


@pytest.mark.parametrize(
    ("keep", "is_kept"), [("kept[i] = net(x)", True), ("kept['last'] = net(x)", False)]
)
def test_outputs_in_a_table(keep: str, is_kept: bool) -> None:
    text = f"""
import torch
from torch import nn
net, kept = nn.Conv2d(3, 8, 3).cuda(), dict()
net.eval()
with torch.no_grad():
    for i, (x, y) in enumerate(val_loader):
        {keep}
"""
    story = program_of(make_run(sources={"t.py": text})).stories[0]
    assert bool(list(kept_outputs(story))) is is_kept


SCORES = """
import lightning as L
import torch
from torch import nn

class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.out, self.kept = nn.Conv3d(1, 3, 1), []

    def training_step(self, batch, i):
        return nn.functional.cross_entropy(self.out(batch[0]), batch[1])

    def validation_step(self, batch, i):
        x, y = batch
        p = self.out(x).softmax(1)
        {keep}

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())

trainer = L.Trainer(max_epochs=2{more})
trainer.fit(Net(), train_loader, val_loader)
"""


@pytest.mark.parametrize(
    ("keep", "more", "is_kept"),
    [
        ("self.kept.append((p, y))", "", True),
        ("self.kept.append({'p': p.detach(), 'y': y})", "", False),  # not followed
        (
            "q = p + self.out(x.flip(2)).flip(2).softmax(1)\n        self.kept.append(q / 2)",
            "",
            True,
        ),
        ("self.kept.append((p.argmax(1), y))", "", False),
        ("self.kept.append((p.cpu(), y))", "", False),
        ("self.kept.append(p.mean())", "", False),
        ("self.kept.append((p, y))", ", accelerator='cpu'", False),
    ],
)
def test_outputs_that_a_module_keeps(keep: str, more: str, is_kept: bool) -> None:
    text = SCORES.replace("{keep}", keep).replace("{more}", more)
    story = program_of(make_run(sources={"t.py": text})).stories[0]
    assert bool(list(kept_outputs(story))) is is_kept
