"""What a notebook shows, by the protocol that IPython and its kin ask objects by."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

import traindx
from traindx.errors import UnknownName

LOG = Path(__file__).parents[1] / "incidents" / "lr-too-high-nan" / "artifacts" / "train.log"


def test_a_diagnosis_shows_itself(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    log = tmp_path / "<b>train.log"
    log.write_text(LOG.read_text())
    diagnosis = traindx.diagnose(log)
    shown = diagnosis._repr_mimebundle_(include=None, exclude=None)  # type: ignore[attr-defined]
    assert set(shown) == {"text/plain", "text/markdown", "text/html"}
    assert "lr-too-high" in shown["text/plain"] and "\x1b" not in shown["text/plain"]
    assert "grad_norm" in shown["text/plain"] or "loss" in shown["text/plain"]  # its curve
    page = shown["text/html"]
    assert page.startswith("<div>") and page.count("<iframe") == 1 and "<b>train" not in page
    fragment = re.sub(r"<iframe.*?</iframe>", "", page, flags=re.DOTALL)
    assert "lr-too-high" in fragment and "<script" not in fragment and "Fix: " in fragment


def test_a_diagnosis_without_its_run_shows_itself_too() -> None:
    again = traindx.Diagnosis.from_dict(traindx.diagnose(LOG).to_dict())
    assert "lr-too-high" in again._repr_mimebundle_()["text/html"]  # type: ignore[attr-defined]


def test_explain_names_and_errors() -> None:
    page = traindx.explain("lr-too-high")
    assert page.startswith("# lr-too-high") and page._repr_markdown_() == page  # type: ignore[attr-defined]
    assert traindx.explain("LR too high") == page
    told = traindx.explain(
        "Traceback (most recent call last):\n"
        '  File "train.py", line 3, in <module>\n'
        "    loss.backward()\n"
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    )
    assert "memory" in told.lower()
    with pytest.raises(UnknownName, match="Did you mean lr-too-high"):
        traindx.explain("lr-to-high")
