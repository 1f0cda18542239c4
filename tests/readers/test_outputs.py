"""What a model put out, in logs and records: samples, predictions, matrices, counts, reports."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.readers.damage import few, survive

from traindx import diagnose, open_run
from traindx.model.run import Run
from traindx.readers.formats.console.reader import read
from traindx.readers.formats.structured.reader import read as read_json
from traindx.readers.outputs.log import read_outputs
from traindx.readers.outputs.matrices import read_counts, read_matrix


def logged(folder: Path, text: str) -> Run:
    path = folder / "train.log"
    path.write_text(text)
    return read(path)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("sample: the the the the", "the the the the"),
        ("Generated: ::::::", "::::::"),
        ('output: "the the the the"', "the the the the"),
        ("[step 200] Sample #3: 'once upon a time'", "once upon a time"),
        ("Prompt: hello -> Output: ::::", "::::"),
        ("2024-01-01 10:00:00 INFO generated text: a b c", "a b c"),
        ("Prediction: Paris is in France", "Paris is in France"),
        ("sample: 3 3 3 3 3 3", "3 3 3 3 3 3"),
    ],
)
def test_a_line_with_a_sample(tmp_path: Path, line: str, text: str) -> None:
    run = logged(tmp_path, f"step 7 loss 0.5\n{line}\nstep 8 loss 0.4\n")
    (sample,) = run.samples
    assert (sample.text, sample.locator, sample.step) == (text, "line 2", 7.0)


@pytest.mark.parametrize(
    "line",
    [
        "samples: 1280, loss 0.3", "samples/s: 310.2", "Output: ./runs/exp1", "num_samples = 50000",
        "output shape: torch.Size([3, 4])", "output_dir: out", "Generated 30 samples in 3 s",
        "prediction: 0.93", "outputs = tensor([0.1, 0.2])", "output: [0.1, 0.2]",
    ],
)  # fmt: skip
def test_a_line_without_a_sample(tmp_path: Path, line: str) -> None:
    assert logged(tmp_path, f"{line}\n").samples == ()


def test_a_sample_below_its_heading(tmp_path: Path) -> None:
    run = logged(tmp_path, "Generated sample:\nthe king\nis the king\n------\nstep 1 loss 2\n")
    assert [s.text for s in run.samples] == ["the king\nis the king"]


MATRIX = "Confusion matrix:\n[[990   0]\n [ 10   0]]\n"


@pytest.mark.parametrize(
    "text",
    [
        MATRIX,
        "confusion_matrix = [[990, 0], [10, 0]]\n",
        "Confusion Matrix\ntensor([[990.,   0.],\n        [ 10.,   0.]], device='cuda:0')\n",
        "Predicted    0   1\nActual            \n0          990   0\n1           10   0\n\n",
        "Confusion matrix:\nPredicted  0  1  All\nActual\n0  990  0  990\n1  10  0  10\nAll  1000  0  1000\n",
    ],
)
def test_a_confusion_matrix(tmp_path: Path, text: str) -> None:
    (found,) = logged(tmp_path, f"epoch 1 loss 0.4\n{text}epoch 2 loss 0.3\n").confusions
    assert found.matrix == ((990.0, 0.0), (10.0, 0.0))
    assert found.locator == "line 2" and found.labels == ("0", "1")


def test_a_matrix_that_scikit_learn_printed(tmp_path: Path) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    truth, guess = [0, 0, 1, 2, 2, 2], [0, 1, 1, 2, 0, 2]
    printed = f"Confusion matrix\n{metrics.confusion_matrix(truth, guess)}\n"
    report = metrics.classification_report(truth, guess, target_names=["cat", "dog", "red fox"])
    run = logged(tmp_path, f"epoch 1 loss 0.4\n{printed}\n{report}\n")
    assert run.confusions[0].matrix == ((1.0, 1.0, 0.0), (0.0, 1.0, 0.0), (1.0, 0.0, 2.0))
    assert run.series["recall/val/class red fox"].values.tolist() == [0.67]
    counts = next(s for s in run.config.settings if s.key == "val.class_counts")
    assert counts.value == {"cat": 2.0, "dog": 1.0, "red fox": 3.0}


@pytest.mark.parametrize(
    "line",
    [
        "Counter({0: 990, 1: 10})", "class counts: [990, 10]", "Label distribution: {0: 990, 1: 10}",
        "train labels: Counter({np.int64(0): 990, np.int64(1): 10})", "class_counts = [990. 10.]",
    ],
)  # fmt: skip
def test_class_counts(tmp_path: Path, line: str) -> None:
    run = logged(tmp_path, f"{line}\nepoch 1 loss 0.3\n")
    (found,) = run.config.matching("class_counts")
    assert found.value == {"0": 990.0, "1": 10.0}


def test_a_counter_of_words_is_no_class_count(tmp_path: Path) -> None:
    assert not list(
        logged(tmp_path, "Counter({'the': 9, 'a': 3})\n").config.matching("class_counts")
    )


def test_predictions_beside_labels_are_a_matrix(tmp_path: Path) -> None:
    path = tmp_path / "predictions.jsonl"
    rows = [{"prediction": 0, "label": i % 2, "step": 9} for i in range(40)]
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    (found,) = read_json(path).confusions
    assert found.matrix == ((20.0, 0.0), (20.0, 0.0))
    lines = "".join(f"pred: cat label: {'cat' if i % 2 else 'dog'}\n" for i in range(40))
    (printed,) = logged(tmp_path, lines).confusions
    assert printed.labels == ("cat", "dog") and printed.matrix == ((20.0, 0.0), (20.0, 0.0))


def test_texts_in_records(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    rows = [{"step": i, "prompt": "p", "generated": ":::::"} for i in range(3)]
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    run = open_run(tmp_path)
    assert [(s.text, s.step, s.locator) for s in run.samples][1] == (":::::", 1.0, "line 2")
    document = tmp_path / "generations.json"
    document.write_text(json.dumps({"step": 5, "samples": ["a a a a a", "b"]}))
    assert [s.text for s in read_json(document).samples] == ["a a a a a", "b"]


def test_samples_that_repeat_are_diagnosed(tmp_path: Path) -> None:
    lines = "".join(f"Prompt: 'p{i}' -> Output: '::::'\n" for i in range(5))
    (tmp_path / "inference.log").write_text(lines)
    causes = {h.cause for h in diagnose(open_run(tmp_path)).hypotheses}
    assert {"repetition-collapse", "embedding-dominated-model"} <= causes


def test_a_long_log_is_searched_quickly_and_located_rightly(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    lines = [f"step {i} loss 0.5 samples: {i * 32}, samples/s 31" for i in range(200_000)]
    lines[150_000] = "sample: hello there"
    path.write_text("\n".join(lines))
    started = time.monotonic()
    ((line, sample),) = read_outputs(path).samples
    assert (line, sample.text) == (150_001, "hello there")
    assert time.monotonic() - started < 5.0


@pytest.mark.parametrize(
    "text", ["sample: x " * 500_000, "Confusion matrix [[" * 60_000, "[[" * 9999]
)
def test_no_text_takes_for_ever(tmp_path: Path, text: str) -> None:
    path = tmp_path / "train.log"
    path.write_text(text)
    started = time.monotonic()
    read_outputs(path)
    assert time.monotonic() - started < 20.0


@given(st.text(max_size=300))
@few
def test_any_text_is_survived(text: str) -> None:
    for head in (
        "sample: ",
        "Confusion matrix:\n",
        "Counter({",
        "precision recall f1-score support\n",
    ):
        survive(read, (head + text).encode(errors="replace"), "train.log")
    read_counts(text)
    read_matrix(text.split("\n"))


@given(st.lists(st.dictionaries(st.sampled_from(["generated", "prediction", "label", "step"]),
                                st.none() | st.integers() | st.floats() | st.text(max_size=9)
                                | st.lists(st.text(max_size=5), max_size=3)), max_size=30))  # fmt: skip
@few
def test_any_records_are_survived(records: list[dict[str, object]]) -> None:
    data = "".join(json.dumps(r) + "\n" for r in records)
    survive(read_json, data.encode(), "predictions.jsonl")
