"""The cases this project grew from that need samples, a checkpoint or a warning."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx import diagnose, open_run

LOSSES = "".join(f"step {i} loss {4 + 6.8 * 0.99**i:.4f}\n" for i in range(0, 300, 5))


def test_colons_whatever_the_prompt(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")

    class Model(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.embedding = torch.nn.Embedding(4000, 64)
            layers = (torch.nn.TransformerEncoderLayer(64, 2, 128) for _ in range(2))
            self.layers = torch.nn.ModuleList(layers)

    torch.save({"model": Model().state_dict(), "step": 300}, tmp_path / "checkpoint.pt")
    (tmp_path / "train.log").write_text(LOSSES)
    outputs = "".join(f"Prompt: 'question {i}' -> Output: '::::'\n" for i in range(5))
    (tmp_path / "inference.log").write_text(outputs)
    diagnosis = diagnose(open_run(tmp_path))
    cause = diagnosis.root_causes[0]
    assert cause.cause == "embedding-dominated-model" and cause.confidence >= 0.85
    said = " ".join(e.says for e in cause.evidence)
    assert "'::::'" in said and "parameters are in embedding.weight" in said
    assert diagnosis.folded["repetition-collapse"] == "embedding-dominated-model"


def test_colons_and_nothing_more(tmp_path: Path) -> None:
    outputs = "".join(f"Prompt: 'question {i}' -> Output: '::::'\n" for i in range(5))
    (tmp_path / "inference.log").write_text(outputs)
    causes = {h.cause: h.confidence for h in diagnose(open_run(tmp_path)).hypotheses}
    assert causes["repetition-collapse"] > causes["embedding-dominated-model"]


def test_a_variance_without_degrees_of_freedom(tmp_path: Path) -> None:
    warning = (
        "/home/u/model/act_head.py:88: UserWarning: var(): degrees of freedom is <= 0. Correction "
        "should be strictly less than the reduction factor\n  return -halting_steps.var()\n"
    )
    (tmp_path / "train.log").write_text(LOSSES + warning)
    (cause,) = diagnose(open_run(tmp_path)).root_causes
    assert cause.cause == "halting-collapse" and cause.confidence >= 0.8
    assert any("act_head.py" in e.says for e in cause.evidence)
