"""Whether a mask of attention leaves every position something to see."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.mask_matrices import blocked_rows, mask_uses
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run

PROGRAM = """
import torch
import torch.nn.functional as F

def attend(q, k, v, n):
    scores = q @ k.transpose(-2, -1)
    i = torch.arange(n)
    return {weights}
"""


@pytest.mark.parametrize(
    ("weights", "is_closed"),
    [
        ("scores.masked_fill(torch.tril(torch.ones(n, n), -1) == 0, -torch.inf).softmax(-1)", True),
        ("scores.masked_fill(~(i[:, None] > i[None, :]), float('-inf')).softmax(-1)", True),
        ("torch.where(torch.ones(n, n).tril(-1).bool(), scores, -1e9).softmax(-1)", True),
        ("F.scaled_dot_product_attention(q, k, v, attn_mask=i[None, :] < i[:, None])", True),
        ("(scores + torch.full((n, n), -torch.inf).triu(0)).softmax(-1)", True),
        ("scores.masked_fill(torch.tril(torch.ones(n, n)) == 0, -torch.inf).softmax(-1)", False),
        ("scores.masked_fill(i[None, :] > i[:, None], float('-inf')).softmax(-1)", False),
        ("F.scaled_dot_product_attention(q, k, v, attn_mask=i[None, :] <= i[:, None])", False),
        ("scores.masked_fill(torch.eye(n).bool(), float('-inf')).softmax(-1)", False),
        ("scores.masked_fill(torch.ones(n, n + 3).triu(), float('-inf')).softmax(-1)", False),
        ("(scores + 1.0 * torch.tril(torch.ones(n, n), -1)).softmax(-1)", False),
    ],
)
def test_a_row_that_is_masked_whole(weights: str, is_closed: bool) -> None:
    text = PROGRAM.format(weights=weights)
    stories = program_of(make_run(sources={"a.py": text})).stories
    uses = [use for story in stories for event in story.events for use in mask_uses(event)]
    assert any(blocked_rows(use) for use in uses) is is_closed
