"""What the tools say: the contract's shapes, bounded, with every extreme kept."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest

from traindx.agent import tools
from traindx.agent.bounds import FULL_CHARS, SUMMARY_CHARS, fit
from traindx.agent.granted_folders import Roots
from traindx.errors import MissingExtra, TraindxError, UnknownName
from traindx.report import figures
from traindx.specialists.plugin.method import AS_COMMAND, WHEN

INCIDENTS = Path(__file__).parents[1] / "incidents"
BROKEN = INCIDENTS / "lr-too-high-nan" / "artifacts"
SPIKE = 987.5


@pytest.fixture
def long_run(tmp_path: Path) -> Roots:
    values = np.full(20_000, 0.5)
    values[7_777] = SPIKE
    values[12_345] = np.nan
    lines = [f"{i},{value},{1e-3}" for i, value in enumerate(values)]
    (tmp_path / "metrics.csv").write_text("step,loss,lr\n" + "\n".join(lines))
    return Roots.of([tmp_path])


def write_checkpoint(folder: Path) -> None:
    tensors = {"embed.weight": (1000, 8), "head.weight": (2, 8), "head.bias": (2,)}
    header, data = {}, b""
    for name, shape in tensors.items():
        values = np.random.default_rng(0).normal(size=shape).astype("<f4")
        raw = (values * np.nan if name == "head.bias" else values).tobytes()
        ends = [len(data), len(data) + len(raw)]
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": ends}
        data += raw
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)


def test_every_tool_says_when_to_use_it() -> None:
    assert set(tools.TOOLS) == set(WHEN) == set(AS_COMMAND)


def test_a_diagnosis_has_the_shape_of_the_contract() -> None:
    answer = tools.diagnose(Roots.of([BROKEN]), symptoms=["the loss became NaN"])
    told = answer.data
    assert told["schema_version"] == "1" and told["status"] == "partial_diagnosis"
    cause = told["root_causes"][0]
    assert cause["cause"] == "lr-too-high" and cause["evidence"][0]["locator"]
    assert cause["remedies"][0]["verify"] and len(json.dumps(told)) <= SUMMARY_CHARS


def test_the_summary_is_shorter_and_says_what_it_left_out() -> None:
    roots = Roots.of([BROKEN])
    brief, full = tools.diagnose(roots).data, tools.diagnose(roots, detail="full").data
    assert len(json.dumps(brief)) < len(json.dumps(full)) <= FULL_CHARS
    assert brief["left_out"]["skipped"] > 0 and "full" in brief["left_out"]["more"]


def test_a_healthy_run_is_called_healthy() -> None:
    roots = Roots.of([INCIDENTS / "healthy-step-decay" / "artifacts"])
    assert tools.diagnose(roots).data["root_causes"] == []


def test_extremes_survive_the_thinning(long_run: Roots) -> None:
    told = tools.extract_training_metrics(long_run, names=["loss*"], points=40).data
    (loss,) = told["metrics"]
    assert loss["points"] == 20_000 and loss["shown"] == len(loss["values"]) <= 45
    assert SPIKE in loss["values"] and "nan" in loss["values"]
    assert loss["max"] == {"step": 7_777, "value": SPIKE, "locator": loss["max"]["locator"]}
    assert loss["first_not_a_number"]["step"] == 12_345
    assert "lr" in told["available"]
    json.dumps(told, allow_nan=False)


def test_metrics_are_chosen_by_name(long_run: Roots) -> None:
    with pytest.raises(UnknownName, match="loss/train"):
        tools.extract_training_metrics(long_run, names=["accuracy"])
    with pytest.raises(UnknownName, match="loss/train"):
        tools.visualize_loss_curve(long_run, metric="accuracy")
    assert tools.visualize_loss_curve(long_run, metric="lr").data["curves"][0]["name"] == "lr"


def test_curves_are_drawn_or_else_charted(monkeypatch: pytest.MonkeyPatch) -> None:
    roots = Roots.of([BROKEN])

    def missing(height: float) -> None:
        raise MissingExtra("drawing figures", "figures")

    monkeypatch.setattr(figures, "_new_figure", missing)
    charted = tools.visualize_loss_curve(roots)
    assert charted.png is None and "░" in charted.data["chart"]  # the stretch without numbers
    assert charted.data["not_numbers"][0]["reaches_end"] is True


def test_parameters_by_block(tmp_path: Path) -> None:
    write_checkpoint(tmp_path)
    told = tools.analyze_architecture(Roots.of([tmp_path])).data
    assert told["parameters"] == 8018 and told["dtypes"]
    assert told["blocks"][0]["name"] == "embed" and told["blocks"][0]["share"] > 0.99
    assert "nan-or-inf-weights" in {found["detector"] for found in told["imbalances"]}
    assert told["not_numbers"] == ["head.bias"]


def test_what_cannot_be_answered_is_an_error_that_says_what_to_try() -> None:
    roots = Roots.of([BROKEN])
    for tool, arguments in (
        ("analyze_architecture", {}),
        ("explain_error", {"text": "  "}),
        ("route", {"question": ""}),
        ("diagnose", {"paths": ["no-such-file.log"]}),
        ("no_such_tool", {}),
    ):
        with pytest.raises(TraindxError, match="Try"):
            tools.call(tool, roots, arguments)


def test_an_error_text_is_explained_without_any_file() -> None:
    text = "RuntimeError: mat1 and mat2 shapes cannot be multiplied (32x10 and 20x5)"
    told = tools.explain_error(Roots.of([]), text).data
    assert told["root_causes"][0]["cause"] == "shape-mismatch"


def test_a_question_finds_its_specialists() -> None:
    told = tools.route(Roots.of([]), "Training is slow, should I use mixed precision?").data
    assert told["specialists"][0] == "performance-profiling" and told["overrides"]


def test_answers_fit_however_much_there_is() -> None:
    deep = {"a": [{"text": "x" * 5000, "rows": list(range(1000))} for _ in range(500)]}
    made = fit(deep, SUMMARY_CHARS)
    assert len(json.dumps(made)) <= SUMMARY_CHARS
    assert made["left_out"]["a"] > 0
