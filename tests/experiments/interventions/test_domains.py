"""Operations kept within their domain, and indices within their table."""

from __future__ import annotations

from pathlib import Path

from changing import change

PROGRAM = """
import json
import torch
from torch import nn
from traindx_interventions import reports

torch.manual_seed(0)
guarded, moved = reports.of("guarded-operations"), reports.of("valid-indices")
w = nn.Parameter(torch.tensor([0.0, 1.0]))
result = {}
for name, value in {
    "log": lambda: torch.log(w), "sqrt": lambda: w.sqrt(), "one over": lambda: 1 / w,
    "quotient": lambda: (w + 1) / w, "exp": lambda: (100 * w).exp(), "acos": lambda: torch.acos(w),
}.items():
    before = guarded.applied
    total = value().sum()
    gradient, = torch.autograd.grad(total, w)
    result[name] = [bool(total.isfinite()), bool(gradient.isfinite().all()), guarded.applied - before]
before = guarded.applied
safe = nn.Parameter(torch.tensor([2.0, 3.0]))
torch.log(safe).sum().backward()
(safe / safe).sum().backward()
torch.optim.Adam([w]).step()
with torch.no_grad():
    result["metric"] = bool(torch.log(w).isinf().any())
result["left alone"] = guarded.applied - before
table = nn.Embedding(5, 2)
rows = table(torch.tensor([0, 5, -1, 4]))
result["rows"] = [bool((rows[1] == table.weight[4]).all()), bool((rows[2] == table.weight[0]).all())]
result["moved"] = moved.applied
print(json.dumps(result))
"""

MASKED = """
import json
import torch

scores = torch.zeros(2, 3, requires_grad=True)
masked = scores.masked_fill(torch.tensor([[True] * 3, [True, False, False]]), float("-inf"))
ways = [torch.softmax(masked, dim=-1), masked.softmax(-1), torch.nn.functional.softmax(masked, -1)]
print(json.dumps([way.isfinite().all().item() and way[1, 0].item() == 0.0 for way in ways]))
"""


def test_operations_stay_within_their_domain(tmp_path: Path) -> None:
    ran = change(tmp_path, PROGRAM, [("guarded-operations", {}), ("valid-indices", {})])
    assert ran.code == 0, ran.errors
    told = ran.told
    assert told["metric"] and told["left alone"] == 0
    assert told["rows"] == [True, True] and told["moved"] == 2
    for name in ("log", "sqrt", "one over", "quotient", "exp", "acos"):
        finite, has_gradient, count = told[name]
        assert finite and has_gradient and count >= 1, name


def test_a_row_that_is_masked_altogether_is_left_unmasked(tmp_path: Path) -> None:
    ran = change(tmp_path, MASKED, [("guarded-operations", {"softmax": True})])
    assert ran.told == [True, True, True]
    assert ran.applied("guarded-operations") == 3
