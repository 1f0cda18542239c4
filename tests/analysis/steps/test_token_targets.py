"""How far targets lie ahead of tokens, as the recorder measures it."""

from __future__ import annotations

import pytest
import torch

from traindx.capture.recorder.token_order import TokenOrder

TOKENS = torch.randint(0, 50, (4, 20), generator=torch.Generator().manual_seed(0))


def ahead(target: torch.Tensor, name: str = "nll_loss") -> int | None:
    order = TokenOrder()
    order.take("embedding", (torch.zeros(50, 8), TOKENS))
    return order.take(name, (torch.zeros(1), 1, target) if name == "gather" else (None, target))


@pytest.mark.parametrize("distance", [0, 1, 2, 3])
def test_targets_that_were_cut(distance: int) -> None:
    assert ahead(TOKENS[:, distance:].reshape(-1)) == distance


def test_targets_that_were_padded() -> None:
    padded = torch.nn.functional.pad(TOKENS, (0, 2), value=-100)[:, 2:]
    assert ahead(padded.reshape(-1)) == 2
    assert ahead(padded.unsqueeze(-1), "gather") == 2


def test_other_targets() -> None:
    assert ahead(torch.randint(0, 50, (80,))) is None
    assert ahead(torch.full((80,), -100)) is None
    assert ahead(torch.arange(4)) is None
