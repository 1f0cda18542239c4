"""What a view can join of a tensor that was rearranged; torch itself is asked as well."""

from __future__ import annotations

import pytest
import torch

from traindx.analysis.program.training.facts.memory_layouts import joins_apart
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run

VIEWS = [
    "torch.zeros(2, 3, 8, 8).unfold(2, 4, 4).unfold(3, 4, 4).view(2, 4, 48)",
    "torch.zeros(2, 16, 3).unfold(1, 4, 4).transpose(2, 3).view(2, 16, 3)",
    "torch.zeros(2, 16, 3).unfold(1, 4, 2).transpose(2, 3).view(2, 28, 3)",
    "torch.zeros(2, 1, 5).expand(2, 4, 5).view(8, 5)",
    "torch.zeros(2, 5).unsqueeze(1).expand(2, 4, 5).view(2, 20)",
    "torch.zeros(2, 1, 5).expand(2, 4, 5).view(2, 4, 5, 1)",
    "torch.zeros(2, 1, 5).expand(2, 4, 5).permute(1, 0, 2).view(4, 10)",
    "torch.zeros(2, 6, 8).chunk(2, dim=-1)[0].view(2, 24)",
    "torch.zeros(2, 6, 8).chunk(2, dim=-1)[0].view(12, 4)",
    "torch.zeros(2, 6, 8).split(3, 1)[0].view(2, 24)",
    "torch.zeros(2, 6, 8).split(3, 1)[0].view(6, 8)",
    "torch.zeros(2, 7, 1, 9).transpose(1, 2).view(2, 63)",
    "torch.zeros(2, 7, 3, 9).transpose(1, 2).view(2, 189)",
]


def _refuses(code: str) -> bool:
    try:
        eval(code, {"torch": torch})
    except RuntimeError:
        return True
    return False


@pytest.mark.parametrize("code", VIEWS)
def test_a_view_is_refused_where_torch_refuses_it(code: str) -> None:
    story = program_of(make_run(sources={"t.py": f"import torch\ny = {code}\n"})).stories[0]
    (view,) = [e for e in story.events if e.name == ".view"]
    assert view.receiver is not None
    assert view.result is not None
    assert joins_apart(story, view.receiver, view.result) is _refuses(code)
