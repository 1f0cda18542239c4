"""Tables, images, counts, classifiers and targets: what is known of data that come from files."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.facts.classifiers import classifiers
from traindx.analysis.program.training.facts.counts import beyond, count_of, highest_of
from traindx.analysis.program.training.idle_layers import is_unlearnt
from traindx.analysis.program.training.layers import forward_passes, is_bare_leaf
from traindx.analysis.program.training.linearity import Linearity
from traindx.analysis.program.training.program import Story, program_of
from traindx.analysis.program.training.tasks import Task, task_of
from traindx.analysis.program.training.vocabularies import unresized_tables
from traindx.examples import make_run

HEAD = """
import cv2
import numpy as np
import pandas as pd
import torch
from PIL import Image
from torch import nn
from torchvision import models

df = pd.read_csv("rows.csv")
image = Image.open("cat.png").convert("RGB").resize((64, 32))
chars = sorted(set(open("text.txt").read()))
codes = {c: i + 1 for i, c in enumerate(chars)}
perm = torch.randperm(100)
i = len(chars)
"""


def _story(text: str) -> Story:
    return program_of(make_run(sources={"train.py": HEAD + text})).stories[0]


def _printed(story: Story) -> list[object]:
    return list([e for e in story.events if e.name == "builtins.print"][-1].args)


@pytest.mark.parametrize(
    ("expression", "rank", "last"),
    [
        ('df["y"].values', 1, None),
        ('df[["a", "b"]].to_numpy()', 2, 2),
        ("df.iloc[:, -1].values", 1, None),
        ("np.asarray(image)", 3, 3),
        ('cv2.cvtColor(cv2.imread("a.png"), cv2.COLOR_BGR2GRAY)', 2, None),
        ("torch.randn(100, 4)[perm[i:i + 8]]", 2, 4),
        ("torch.randn(100, 4)[i, 0]", 0, None),
        ("models.resnet18(num_classes=7)(torch.randn(2, 3, 32, 32))", 2, 7),
    ],
)
def test_shapes_of_what_is_read(expression: str, rank: int, last: int | None) -> None:
    story = _story(f"print({expression})")
    shape = story.shapes.shape(_printed(story)[0])  # type: ignore[arg-type]
    assert shape is not None and shape.rank == rank
    assert last is None or shape.sizes[-1] == last


def test_pixels_are_bytes() -> None:
    story = _story("print(np.asarray(image))")
    element = story.dtypes.of(_printed(story)[0])  # type: ignore[arg-type]
    assert element is not None and element.dtype == "uint8"


@pytest.mark.parametrize(
    ("rows", "index", "missing"),
    [
        ("len(chars)", "torch.tensor([codes[c] for c in chars])", 1),
        ("len(chars) + 1", "torch.tensor([codes[c] for c in chars])", None),
        ("df.user.max()", "torch.tensor(df.user.values)", 1),
        ("df.user.max() + 1", "torch.tensor(df.user.values)", None),
        ("df.item.max()", "torch.tensor(df.user.values)", None),
    ],
)
def test_counts_that_only_the_data_decide(rows: str, index: str, missing: int | None) -> None:
    story = _story(f"print({rows}, {index})")
    count, numbers = _printed(story)
    high = highest_of(story, numbers)  # type: ignore[arg-type]
    assert beyond(high, count_of(story, count)) == missing  # type: ignore[arg-type]


def test_a_reversed_list_is_gone_over_from_its_end() -> None:
    story = _story("for a, b in zip([1, 2], reversed([3, 4])):\n    print(a, b)")
    printed = [e.args for e in story.events if e.name == "builtins.print"]
    assert [[v.value for v in row] for row in printed] == [[1, 4], [2, 3]]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("made", "outputs"),
    [
        ('X.from_pretrained("bert-base-uncased")', 2),
        ('X.from_pretrained("bert-base-uncased", num_labels=5)', 5),
        ('X.from_pretrained("someone/bert-finetuned")', None),
    ],
)
def test_outputs_of_a_classifier(made: str, outputs: int | None) -> None:
    line = "from transformers import AutoModelForSequenceClassification as X\n"
    found = classifiers(_story(f"{line}model = {made}"))
    assert list(found.values()) == ([] if outputs is None else [outputs])


def test_a_tokenizer_that_grows_beyond_its_model() -> None:
    text = """
from transformers import AutoModelForCausalLM, AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained("gpt2")
tokenizer.add_tokens(["<|user|>"])
model = AutoModelForCausalLM.from_pretrained("gpt2")
"""
    (found,) = unresized_tables(_story(text))
    assert found.tokens == ("<|user|>",)
    assert not list(unresized_tables(_story(text + "model.resize_token_embeddings(9)\n")))


TWO = """
class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 2), nn.Linear(4, 2)
    def forward(self, x):
        return self.a(x), self.b(x)
net = Two()
optimizer = torch.optim.Adam(net.parameters())
for step in range(9):
    one, other = net(torch.randn(8, 4))
    ({loss}).backward()
    optimizer.step()
print(net.b)
"""


@pytest.mark.parametrize(("loss", "answer"), [("one.sum()", True), ("(one + other).sum()", False)])
def test_weights_that_no_loss_depends_on(loss: str, answer: bool) -> None:
    story = _story(TWO.format(loss=loss))
    layer = _printed(story)[0]
    calls = forward_passes(story, layer)  # type: ignore[arg-type]
    assert is_unlearnt(story, layer, calls) is answer  # type: ignore[arg-type]


def test_a_chain_of_linear_layers_inside_a_model() -> None:
    net = (
        "nn.Sequential(nn.Linear(8, 4), nn.Dropout(), nn.Linear(4, 2), nn.Linear(2, 8), nn.ReLU())"
    )
    story = _story(f"y = {net}(torch.randn(2, 8))")
    assert max(len(row.calls) for row in Linearity(story.events, story.flow).chains()) == 3


def test_what_a_target_is() -> None:
    text = """
from sklearn.datasets import load_diabetes, load_iris
rows, level = load_diabetes(return_X_y=True)
flowers, kind = load_iris(return_X_y=True)
print(torch.tensor(level), torch.tensor(kind), torch.tensor(level > 140), torch.eye(3)[kind])
"""
    story = _story(text)
    found = [task_of(story, v) for v in _printed(story)]  # type: ignore[arg-type]
    kinds = [None if f is None else f[0] for f in found]
    assert kinds == [Task.AMOUNT, Task.CLASS, None, None]


def test_a_tensor_that_is_no_parameter() -> None:
    story = _story("print(torch.ones(3, requires_grad=True), torch.ones(3), nn.Linear(2, 2))")
    assert [is_bare_leaf(v) for v in _printed(story)] == [True, False, False]  # type: ignore[arg-type]
