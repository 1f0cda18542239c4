"""Shapes, dtypes, devices and the whole numbers of tensors, followed through a program."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.facts.dtype_clashes import blamed_dtypes, dtype_clashes
from traindx.analysis.program.training.facts.index_clashes import index_clashes
from traindx.analysis.program.training.facts.tensor_devices import TensorPlace
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import make_run, script

TEXT = """
import math
import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset, TensorDataset

device = "cuda" if torch.cuda.is_available() else "cpu"
rng = np.random.default_rng(0)

class Rows(Dataset):
    def __init__(self):
        self.x, self.y = rng.normal(size=(50, 6, 4)), rng.integers(0, 3, 50)

    def __len__(self):
        return 50

    def __getitem__(self, i):
        return self.x[i].transpose(1, 0), float(self.y[i]), int(self.y[i])

def joined(rows):
    xs, ys, zs = zip(*rows)
    return torch.stack([torch.from_numpy(x) for x in xs]), torch.tensor(zs)

for a, b, c in DataLoader(Rows(), 8):
    pass
for d, e in DataLoader(Rows(), 8, collate_fn=joined):
    pass
digits = load_digits()
train, test = train_test_split(digits.images)
net = nn.Sequential(nn.Conv1d(4, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(32, 2)).to(device)
x = torch.randn(16, 4, 6)
print({expression})
"""


def _asked(expression: str) -> tuple[Story, object]:
    run = make_run(sources={"train.py": TEXT.format(expression=expression)})
    story = program_of(run).stories[0]
    printed = [e for e in story.events if e.name == "builtins.print"]
    return story, printed[-1].args[0]


@pytest.mark.parametrize(
    ("expression", "shape"),
    [
        ("a", "(B, 4, 6)"),
        ("b", "(B,)"),
        ("d", "(?, 4, 6)"),
        ("e", "(?,)"),
        ("train", "(?, 8, 8)"),
        ("net(x)", "(16, 2)"),
        ("net(a.float())", "(B, 2)"),
        ("x[:, None, ::2]", "(16, 1, 2, 6)"),
        ("x.permute(2, 0, 1).flatten(1)", "(6, 64)"),
        ("torch.einsum('bct,dct->bd', x, x)", "(16, 16)"),
        ("np.concatenate([rng.normal(size=(3, 2)), np.ones((3, 5))], axis=1)", "(3, 7)"),
        ("np.linspace(0, math.pi, 9)[:, np.newaxis] * 2", "(9, 1)"),
        ("pad_sequence([torch.ones(3, 5), torch.ones(4, 5)], batch_first=True)", "(?, ?, 5)"),
        ("x.view(int(x.mean()), 2, 3, 4, -1)", "(?, 2, 3, 4, ?)"),
        ("torch.FloatTensor(3, 5)", "(3, 5)"),
        ("torch.stft(torch.ones(3, 400), 64, 20, return_complex=True).abs()", "(3, 33, 21)"),
        ("torch.cdist(x, x[:, :3])", "(16, 4, 3)"),
        ("torch.diff(x, dim=1)", "(16, 3, 6)"),
        ("x.movedim(1, -1)", "(16, 6, 4)"),
        ("rng.choice([3, 5]) * 0.5 * x", None),
        ("[3, 5][int(x.sum())] * x", "(16, 4, 6)"),
        ("list(rng.normal(size=3)) + list(rng.normal(size=6))", None),
        ("np.split(np.ones((9, 2)), [3, 7])[1]", "(4, 2)"),
        ("x.tensor_split((1, 4), dim=2)[2]", "(16, 4, 2)"),
        ("x.mean([1, 2], keepdims=True)", "(16, 1, 1)"),
        ("nn.functional.interpolate(x, scale_factor=math.sqrt(n))", "(16, 4, ?)"),
        ("~(x > 0)", "(16, 4, 6)"),
        ("x.expand(sizes)", None),
        ("x.view(-1, *sizes)", None),
        ("unknown(x)", None),
    ],
)
def test_shapes_are_followed(expression: str, shape: str | None) -> None:
    story, value = _asked(expression)
    found = story.shapes.shape(value)  # type: ignore[arg-type]
    plain = "".join(c for c in str(found) if not c.isdigit()) if found else None
    wanted = "".join(c for c in shape if not c.isdigit()) if shape else None
    assert plain == wanted
    if shape is not None and "B" not in shape and "?" not in shape:
        assert str(found) == shape


@pytest.mark.parametrize(
    ("expression", "dtype"),
    [
        ("a", "float64"),
        ("b", "float64"),
        ("c", "int64"),
        ("d", "float64"),
        ("digits.target", "int64"),
        ("torch.tensor([1.0, 2.0])", "float32"),
        ("torch.from_numpy(np.zeros((2, 2), np.float32))", "float32"),
        ("torch.cat([x, torch.ones(1, 4, 6).double()])", "float64"),
        ("x * torch.tensor(2.0).double()", None),
        ("x.numpy().astype('float32') / np.array([1.0, 2.0])", "float64"),
        ("x.numpy() / 2.0", "float32"),
        ("(x > 0).sum()", "int64"),
        ("~(x > 0)", "bool"),
        ("net(x)", "float32"),
        ("np.arange(4) / 2", "float64"),
        ("torch.zeros(3).add_(torch.ones(3).double())", "float32"),
        ("torch.arange(4) / 2", "float32"),
    ],
)
def test_dtypes_are_followed(expression: str, dtype: str | None) -> None:
    story, value = _asked(expression)
    found = story.dtypes.of(value)  # type: ignore[arg-type]
    assert (None if found is None else found.dtype) == dtype


@pytest.mark.parametrize(
    ("expression", "reached"),
    [
        ("c", (0, 2)),
        ("e + 1", (1, 3)),
        ("digits.target", (0, 9)),
        ("digits.target[torch.randperm(1797)[:900]]", (0, 9)),
        ("digits.target[np.arange(1797) < 1400]", (0, 9)),
        ("digits.target[digits.target < 5]", None),
        ("digits.target[~(digits.target < 5) & keep]", None),
        ("digits.target[np.where(digits.target > 4)[0]]", None),
        ("digits.target[[i for i in range(1797) if digits.target[i] > 4]]", None),
        ("torch.arange(5) * 2", (0, 8)),
        ("torch.randint(3, 7, (100,)) % 4", (0, 3)),
        ("torch.randint(0, 100, (4,))", None),
        ("torch.tensor([2, 5, 3])", (2, 5)),
        ("torch.stack([torch.arange(3), torch.arange(9)[:3]], 1)[:, 0]", None),
        ("c.clamp(max=1)", None),
    ],
)
def test_whole_numbers_are_followed(expression: str, reached: tuple[int, int] | None) -> None:
    story, value = _asked(expression)
    found = story.ranges.of(value)  # type: ignore[arg-type]
    assert (None if found is None else (found.low, found.high)) == reached


@pytest.mark.parametrize(
    ("expression", "place"),
    [
        ("a", TensorPlace.CPU),
        ("x.to(device)", TensorPlace.ACCELERATOR),
        ("torch.zeros(3, device=device)", TensorPlace.ACCELERATOR),
        ("torch.zeros_like(x.to(device))", TensorPlace.ACCELERATOR),
        ("x.to(device).cpu() * 2", TensorPlace.CPU),
        ("net(x)", TensorPlace.ACCELERATOR),
        ("torch.zeros(3).to(x.device)", TensorPlace.CPU),
        ("unknown(x)", None),
    ],
)
def test_devices_are_followed(expression: str, place: TensorPlace | None) -> None:
    story, value = _asked(expression)
    assert story.places.of(value) is place  # type: ignore[arg-type]


def test_the_origin_of_a_dtype_is_where_it_begins() -> None:
    story, _ = _asked("net(a)")
    (clash,) = {c.text: c for c in dtype_clashes(story)}.values()
    assert clash.text == "Conv1d has float32 weights and receives float64"
    origin = story.dtypes.origin(clash.operand)
    assert origin.site is not None and origin.site.node.lineno == 16  # type: ignore[attr-defined]


@pytest.mark.parametrize(("given", "is_clash"), [
    ("images.reshape(100, -1)", False),
    ("images.view(-1, 784)", False),
    ("images.view(-1, 500)", True),
    ("torch.ones(len(labels)).view(-1, 10)", False),
])  # fmt: skip
def test_a_batch_may_have_the_size_that_a_view_needs(given: str, is_clash: bool) -> None:
    text = f"""
import torch
from torch.utils.data import DataLoader
from torchvision import datasets, transforms
data = datasets.MNIST("data", transform=transforms.ToTensor())
for images, labels in DataLoader(data, batch_size=100):
    print({given})
"""
    story = program_of(make_run(sources={"t.py": text})).stories[0]
    assert bool(list(story.shapes.clashes())) is is_clash


def test_a_long_computation_is_given_up() -> None:
    story, value = _asked(" + ".join(["n"] * 400))
    assert story.shapes.shape(value) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("made", "found"),
    [
        ("torch.from_numpy(np.zeros((4, 8)))", [("float64", True)]),
        ("torch.from_numpy(np.zeros((4, 8))).float()", []),
        ("torch.zeros(4, 8)", []),
    ],
)
def test_a_dtype_is_blamed_once_where_it_comes_from(
    made: str, found: list[tuple[str, bool]]
) -> None:
    text = "import numpy as np\nimport torch\nnet = torch.nn.Linear(8, 2)\nx = {made}\nnet(x)\nnet(x)\n"
    blamed = blamed_dtypes(program_of(script(text, made=made)))
    assert [(b.dtype, b.origin is not None) for b in blamed] == found


@pytest.mark.parametrize(
    ("expression", "is_clash"),
    [
        ("x.gather(1, torch.zeros(16, 1, 6))", True),
        ("x.gather(1, torch.zeros(16, 1, 6).long())", False),
        ("x.index_select(0, torch.ones(3))", True),
        ("x.scatter_add(1, torch.zeros(16, 1, 6).long(), torch.ones(16, 1, 6).double())", True),
        ("x.scatter_add(1, torch.zeros(16, 1, 6).long(), torch.ones(16, 1, 6))", False),
        ("x.lerp(x.double(), 0.5)", True),
        ("(x > 0) & (x < 1)", False),
        ("(x > 0).float() & (x < 1)", True),
        ("torch.bincount(torch.ones(4))", True),
    ],
)
def test_indices_and_what_is_written_have_a_dtype(expression: str, is_clash: bool) -> None:
    story, _ = _asked(expression)
    assert any(dtype_clashes(story)) == is_clash


@pytest.mark.parametrize(
    ("rows", "cause"),
    [
        ("len(words)", "vocabulary-mismatch"),
        ("len(words) + 1", None),
        ("len(stoi)", "vocabulary-mismatch"),
    ],
)
@pytest.mark.parametrize("number", ["enumerate(words, 1)", "enumerate(words, start=1)"])
def test_ids_that_begin_at_one(rows: str, cause: str | None, number: str) -> None:
    text = (
        "words = sorted(set(open('corpus.txt').read().split()))\n"
        f"stoi = {{w: i for i, w in {number}}}\n"
        "ids = torch.tensor([stoi[w] for w in words])\n"
        f"print(nn.Embedding({rows}, 8)(ids))\n"
    )
    story = program_of(script(text)).stories[0]
    assert {c.cause for c in index_clashes(story)} == ({cause} if cause else set())
