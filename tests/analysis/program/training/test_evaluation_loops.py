"""An evaluation runs the model, and without a graph."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.needless_graphs import needless_graphs, needless_scores
from traindx.analysis.program.training.program import each_place
from traindx.analysis.program.training.unrun_models import unrun_models
from traindx.examples import script

PROGRAM = """
import torch

model = torch.nn.Linear(4, 4)
opt = torch.optim.SGD(model.parameters(), lr=0.1)

def evaluate(loader):
    model.eval()
    for x, y in loader:
        {score}

for x, y in train_loader:
    opt.zero_grad()
    torch.nn.functional.mse_loss(model(x), y).backward()
    opt.step()
{call}
"""
CALL = "evaluate(val_loader)"
OFF = "with torch.no_grad():\n    evaluate(val_loader)"


@pytest.mark.parametrize(("call", "count"), [(CALL, 1), (OFF, 0)])
def test_a_graph_that_nobody_needs(call: str, count: int) -> None:
    run = script(PROGRAM, score="print(model(x).argmax(1) == y)", call=call)
    found = list(each_place(run, needless_graphs, lambda graph: graph.loop.run.site.node))
    assert len(found) == count
    assert all("@torch.no_grad()" in (graph.patch() or "") for graph in found)


@pytest.mark.parametrize(("given", "count"), [("x", 1), ("model(x)", 0)])
def test_a_loss_without_the_model(given: str, count: int) -> None:
    run = script(PROGRAM, score=f"torch.nn.functional.mse_loss({given}, y)", call=CALL)
    assert len(list(each_place(run, unrun_models, lambda unrun: unrun.loss.node))) == count


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("return model(x).argmax(1).tolist()", 1),
        ("return model(x)", 0),
        ("with torch.no_grad(): return model(x).argmax(1).tolist()", 0),
    ],
)
def test_a_function_that_only_reads_off_scores(body: str, count: int) -> None:
    score = f"def score(x):\n    {body}\nscore(held_out)"
    run = script(PROGRAM, score="pass", call=score)
    assert len(list(each_place(run, needless_scores, lambda deed: deed.event.node))) == count
