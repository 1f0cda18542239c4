"""Shape errors explained: messages that torch raises here, older wordings, and repaired programs."""

from __future__ import annotations

import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn, randn
from torch.nn import functional

from traindx.diagnosis.engine import diagnose
from traindx.examples import failed, make_run
from traindx.model.findings import Finding
from traindx.model.run import Run, Source
from traindx.registry import detectors
from traindx.tracebacks import parse_failures

DETECTORS = {d.name: d for d in detectors().items}
ERRORS = (
    "matmul-shape-error",
    "convolution-channel-error",
    "tensor-size-error",
    "view-on-non-contiguous-tensor",
)


def explained(run: Run, *names: str) -> list[Finding]:
    return [f.named(n) for n in names or ERRORS for f in DETECTORS[n].check(run)]


def long(*sizes: int) -> torch.Tensor:
    return torch.zeros(sizes, dtype=torch.long)


# what raises, the detector that explains it, the cause, and what the explanation says
RAISED: dict[str, tuple[Callable[[], object], str, str, str]] = {
    "linear": (
        lambda: nn.Linear(64, 128)(randn(4, 57600)),
        "matmul-shape-error", "", "57600 = 64×30×30",
    ),
    "bmm": (
        lambda: torch.bmm(randn(2, 3, 4), randn(2, 5, 6)),
        "matmul-shape-error", "shape-mismatch", "inner size of 4 and gets 5",
    ),
    "grey": (
        lambda: nn.Conv2d(3, 64, 3)(randn(8, 1, 28, 28)),
        "convolution-channel-error", "channel-mismatch", "grey images",
    ),
    "channels last": (
        lambda: nn.Conv2d(3, 64, 3)(randn(8, 64, 64, 3)),
        "convolution-channel-error", "channel-mismatch", "permute(0, 3, 1, 2)",
    ),
    "grouped": (
        lambda: nn.Conv2d(4, 8, 3, groups=2)(randn(8, 6, 28, 28)),
        "convolution-channel-error", "channel-mismatch", "built for 4 channels and receives 6",
    ),
    "features last": (
        lambda: nn.Conv1d(3, 64, 3)(randn(8, 10, 3)),
        "convolution-channel-error", "channel-mismatch", "transpose(1, 2)",
    ),
    "transposed": (
        lambda: nn.ConvTranspose2d(3, 64, 3)(randn(8, 4, 10, 10)),
        "convolution-channel-error", "channel-mismatch", "built for 3 channels and receives 4",
    ),
    "batch norm": (
        lambda: nn.BatchNorm2d(64)(randn(8, 32, 4, 4)),
        "convolution-channel-error", "channel-mismatch", "built for 64 channels and receives 32",
    ),
    "group norm": (
        lambda: nn.GroupNorm(4, 64)(randn(8, 32, 2, 2)),
        "convolution-channel-error", "channel-mismatch", "built for 64 channels and receives 32",
    ),
    "norm of flat input": (
        lambda: nn.BatchNorm2d(64)(randn(8, 64)),
        "convolution-channel-error", "channel-mismatch", "takes 4D input and receives 2D",
    ),
    "norm of images": (
        lambda: nn.BatchNorm1d(64)(randn(8, 64, 2, 2)),
        "convolution-channel-error", "channel-mismatch", "takes 2D or 3D input and receives 4D",
    ),
    "sum": (
        lambda: randn(4, 10) + randn(4, 5),
        "tensor-size-error", "shape-mismatch", "10 and 5 elements in dimension 1",
    ),
    "join": (
        lambda: torch.cat([randn(2, 3, 32, 32), randn(2, 3, 31, 31)], 1),
        "tensor-size-error", "shape-mismatch", "one apart",
    ),
    "join of ranks": (
        lambda: torch.cat([randn(2, 3), randn(2, 3, 4)], 1),
        "tensor-size-error", "shape-mismatch", "2 and 3 dimensions",
    ),
    "view": (
        lambda: randn(57600).view(32, 400),
        "tensor-size-error", "shape-mismatch", "57600 / 32 = 1800 per row",
    ),
    "view with a gap": (
        lambda: randn(57600).view(-1, 401),
        "tensor-size-error", "shape-mismatch", "is not a whole number",
    ),
    "stack of images": (
        lambda: torch.stack([randn(3, 8, 8), randn(1, 8, 8)]),
        "tensor-size-error", "channel-mismatch", "RGB and grey images",
    ),
    "stack of sequences": (
        lambda: torch.stack([randn(7), randn(9)]),
        "tensor-size-error", "shape-mismatch", "pad_sequence",
    ),
    "loss": (
        lambda: functional.cross_entropy(randn(324, 10), long(4)),
        "tensor-size-error", "shape-mismatch", "324 = 4·81",
    ),
    "binary loss": (
        lambda: functional.binary_cross_entropy_with_logits(randn(64, 1), randn(64)),
        "tensor-size-error", "shape-mismatch", "target.unsqueeze(1)",
    ),
    "loss of probabilities": (
        lambda: functional.binary_cross_entropy(torch.rand(64, 1), torch.rand(64)),
        "tensor-size-error", "shape-mismatch", "predictions of [64, 1] and targets of [64]",
    ),
    "loss per class": (
        lambda: functional.binary_cross_entropy_with_logits(randn(64, 5), randn(64)),
        "tensor-size-error", "shape-mismatch", "F.one_hot(target, 5)",
    ),
    "maps": (
        lambda: functional.cross_entropy(randn(2, 5, 8, 8), long(2, 4, 4)),
        "tensor-size-error", "shape-mismatch", "F.interpolate`, size=[4, 4]",
    ),
    "maps with channels": (
        lambda: functional.cross_entropy(randn(2, 5, 8, 8), long(2, 1, 8, 8)),
        "tensor-size-error", "shape-mismatch", "target.squeeze(1)",
    ),
    "targets of two dimensions": (
        lambda: functional.cross_entropy(randn(2, 5), long(2, 1)),
        "tensor-size-error", "shape-mismatch", "target.squeeze(1)",
    ),
    "dimension": (
        lambda: randn(3).sum(1),
        "tensor-size-error", "shape-mismatch", "Dimension 1 does not exist",
    ),
    "flat images": (
        lambda: nn.Conv2d(1, 8, 3)(randn(784)),
        "tensor-size-error", "shape-mismatch", "784 = 28×28",
    ),
    "recurrent": (
        lambda: nn.LSTM(10, 3)(randn(2, 5, 8)),
        "tensor-size-error", "shape-mismatch", "takes 10 features per step and receives 8",
    ),
    "layer norm": (
        lambda: nn.LayerNorm(10)(randn(2, 5, 8)),
        "tensor-size-error", "shape-mismatch", "built for [10] and receives [2, 5, 8]",
    ),
    "attention": (
        lambda: nn.MultiheadAttention(16, 4)(randn(2, 5, 8), randn(2, 5, 8), randn(2, 5, 8)),
        "tensor-size-error", "shape-mismatch", "built for 16 features and receives 8",
    ),
    "expand": (
        lambda: randn(2, 3).expand(4, 5),
        "tensor-size-error", "shape-mismatch", "expanded to 5",
    ),
    "kernel": (
        lambda: nn.Conv2d(1, 1, 5)(randn(1, 1, 3, 3)),
        "tensor-size-error", "shape-mismatch", "larger than its input",
    ),
    "pooling": (
        lambda: nn.MaxPool2d(2)(randn(1, 1, 1, 1)),
        "tensor-size-error", "shape-mismatch", "shrunk too far",
    ),
    "strides": (
        lambda: randn(2, 3, 4).transpose(1, 2).view(2, 12),
        "view-on-non-contiguous-tensor", "non-contiguous-view", "memory order",
    ),
}  # fmt: skip

OLD: dict[str, tuple[str, str, str, str]] = {
    "matmul of torch 1.4": (
        "RuntimeError: size mismatch, m1: [4 x 57600], m2: [64 x 128] at "
        "/pytorch/aten/src/TH/generic/THTensorMath.cpp:136",
        "matmul-shape-error", "", "57600 = 64×30×30",
    ),
    "convolution of torch 1.0": (
        "RuntimeError: Given groups=1, weight of size [64, 3, 7, 7], expected input[1, 1, 224, 224]"
        " to have 3 channels, but got 1 channels instead",
        "convolution-channel-error", "channel-mismatch", "grey images",
    ),
    "rank of torch 1.5": (
        "RuntimeError: Expected 4-dimensional input for 4-dimensional weight [64, 3, 3, 3], but "
        "got 3-dimensional input of size [3, 224, 224] instead",
        "convolution-channel-error", "channel-mismatch", "takes 4D input and receives 3D",
    ),
    "join of torch 1.4": (
        "RuntimeError: invalid argument 0: Sizes of tensors must match except in dimension 1. Got "
        "32 and 31 in dimension 2 at /pytorch/aten/src/THC/generic/THCTensorMath.cu:71",
        "tensor-size-error", "shape-mismatch", "32 and 31",
    ),
    "loss of torch 1.2": (
        "ValueError: Expected input batch_size (324) to match target batch_size (4).",
        "tensor-size-error", "shape-mismatch", "324 = 4·81",
    ),
    "maps of torch 1.6": (
        "RuntimeError: input and target batch or spatial sizes don't match: target [4 x 60 x 60], "
        "input [4 x 21 x 64 x 64] at /pytorch/aten/src/THCUNN/generic/SpatialClassNLLCriterion.cu",
        "tensor-size-error", "shape-mismatch", "size=[60, 60]",
    ),
    "view of torch 0.4": (
        "RuntimeError: shape '[32, 400]' is invalid for input of size 57600",
        "tensor-size-error", "shape-mismatch", "1800 per row",
    ),
}  # fmt: skip


def words(findings: list[Finding]) -> str:
    return " | ".join([f.claim for f in findings] + [e.says for f in findings for e in f.evidence])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", RAISED)
def test_what_torch_raises_is_explained(name: str) -> None:
    call, detector, cause, text = RAISED[name]
    with pytest.raises((RuntimeError, ValueError, IndexError, AssertionError)) as caught:
        call()
    printed = "".join(traceback.format_exception(caught.value))
    run = make_run(failures=parse_failures(printed, "train.log"))
    findings = explained(run)
    assert [f.detector for f in findings] == [detector]
    assert (findings[0].shows or "") == cause
    assert text in words(findings)
    assert all(e.artifact == "train.log" and e.locator for e in findings[0].evidence)


@pytest.mark.parametrize("name", OLD)
def test_older_wordings_are_explained(name: str) -> None:
    error, detector, cause, text = OLD[name]
    findings = explained(failed(error))
    assert [f.detector for f in findings] == [detector]
    assert (findings[0].shows or "") == cause
    assert text in words(findings)


# --- programs that fail, are explained, patched, and run ------------------------------------------

SCENARIO = '''import torch
import torch.nn as nn


class MyModel(nn.Module):
    """A small classifier."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, kernel_size=3)
        self.fc1 = nn.Linear(64, 128)  # hidden layer
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        x = torch.relu(self.conv1(x))
        x = x.view(x.size(0), -1)
        x = torch.relu(self.fc1(x))
        return self.fc2(x)


model = MyModel()
x = torch.randn(4, 3, 32, 32)
output = model(x)
print(tuple(output.shape))
'''

NORM = SCENARIO.replace("self.fc1 = nn.Linear(64, 128)", "self.fc1 = nn.Linear(57600, 128)").replace(
    "        x = torch.relu(self.conv1(x))\n",
    "        x = torch.relu(self.bn(self.conv1(x)))\n",
).replace(
    "        self.fc2 =", "        self.bn = nn.BatchNorm2d(num_features=32)\n        self.fc2 ="
)  # fmt: skip
GREY = SCENARIO.replace("nn.Linear(64, 128)", "nn.Linear(57600, 128)").replace(
    "torch.randn(4, 3,", "torch.randn(4, 1,"
)
VIEW = SCENARIO.replace("nn.Linear(64, 128)", "nn.Linear(57600, 128)").replace(
    "x = x.view(x.size(0), -1)", "x = x.permute(0, 2, 3, 1).view(x.size(0), -1)  # by pixel"
)
PROGRAMS = {
    "scenario 1": (SCENARIO, "matmul-shape-error", "shape-mismatch", 11),
    "a norm for other channels": (NORM, "convolution-channel-error", "channel-mismatch", 12),
    "grey images": (GREY, "convolution-channel-error", "channel-mismatch", 10),
    "a strided view": (VIEW, "view-on-non-contiguous-tensor", "non-contiguous-view", 16),
}


def executed(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "model.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("with_inputs", [True, False], ids=["inputs known", "inputs solved"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_failing_program_is_repaired(name: str, with_inputs: bool, tmp_path: Path) -> None:
    text, detector, cause, line = PROGRAMS[name]
    (tmp_path / "model.py").write_text(text)
    failed = executed(tmp_path)
    assert failed.returncode
    shown = text if with_inputs else text.split("model = MyModel()")[0]
    if not with_inputs and name == "grey images":
        return  # the class alone is right; only its input shows the fault
    failures = parse_failures(failed.stderr, "train.log")
    run = Run(failures=failures, sources=(Source("model.py", shown),))
    (finding,) = explained(run)
    assert (finding.detector, finding.shows) == (detector, cause)
    assert finding.location is not None
    assert (finding.location.file, finding.location.line) == ("model.py", line)
    assert finding.patch is not None
    subprocess.run(["git", "apply", "-"], input=finding.patch, text=True, cwd=tmp_path, check=True)
    done = executed(tmp_path)
    assert done.stdout.strip() == "(4, 10)", done.stderr


def test_scenario_1_is_diagnosed_with_its_arithmetic(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(SCENARIO)
    failures = parse_failures(executed(tmp_path).stderr, "train.log")
    found = diagnose(Run(failures=failures, sources=(Source("model.py", SCENARIO),)))
    best = found.hypotheses[0]
    assert best.cause == "shape-mismatch" and best.confidence > 0.9
    assert best.location is not None and best.location.line == 11
    told = " ".join(e.says for e in best.evidence)
    assert "57600 = 64×30×30" in told
    assert "3×3 convolution without padding on line 15 turns 32×32 into 30×30" in told
    assert "AdaptiveAvgPool2d" in told
    assert any(r.patch and "nn.Linear(57600, 128)" in r.patch for r in best.remedies)


def test_the_source_alone_shows_scenario_1() -> None:
    run = make_run(sources={"model.py": SCENARIO})
    (finding,) = DETECTORS["mismatched-layer-sizes"].check(run)
    assert finding.shows == "shape-mismatch"
    assert finding.location is not None and finding.location.line == 11
    assert finding.patch is not None and "nn.Linear(57600, 128)" in finding.patch


DATASET = """
import torch
from torch import nn
from torchvision import datasets, transforms

transform = transforms.Compose([{steps}transforms.ToTensor()])
data = datasets.{name}("data", transform=transform)
loader = torch.utils.data.DataLoader(data, batch_size=64)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d({channels}, 8, 5)
        self.fc = nn.Linear(8 * {side} * {side}, 10)

    def forward(self, x):
        return self.fc(torch.flatten(self.conv(x), 1))

device = "cpu"
model = Net().to(device)
for images, labels in loader:
    images, labels = images.to(device), labels.to(device)
    loss = nn.functional.cross_entropy(model(images), labels)
"""


@pytest.mark.parametrize(
    ("values", "cause"),
    [
        ({"name": "MNIST", "steps": "", "channels": 1, "side": 24}, None),
        ({"name": "MNIST", "steps": "", "channels": 1, "side": 28}, "shape-mismatch"),
        ({"name": "MNIST", "steps": "", "channels": 3, "side": 24}, "channel-mismatch"),
        ({"name": "CIFAR10", "steps": "", "channels": 3, "side": 28}, None),
        ({"name": "CIFAR10", "steps": "", "channels": 3, "side": 24}, "shape-mismatch"),
        (
            {
                "name": "CIFAR10",
                "steps": "transforms.Resize((28, 28)), ",
                "channels": 3,
                "side": 24,
            },
            None,
        ),
        (
            {"name": "MNIST", "steps": "transforms.Grayscale(3), ", "channels": 3, "side": 24},
            None,
        ),
        (
            {"name": "MNIST", "steps": "mine, ", "channels": 3, "side": 24},
            None,
        ),
        (
            {
                "name": "ImageFolder",
                "steps": "transforms.Resize(256), transforms.CenterCrop(224), ",
                "channels": 3,
                "side": 224,
            },
            "shape-mismatch",
        ),
    ],
)
def test_known_datasets_give_the_input(values: dict[str, object], cause: str | None) -> None:
    run = make_run(sources={"train.py": DATASET.format(**values)})
    found = list(DETECTORS["mismatched-layer-sizes"].check(run))
    assert [f.shows for f in found] == ([] if cause is None else [cause])


def test_the_line_that_mixes_batch_and_features_is_found() -> None:
    text = SCENARIO.replace("x.view(x.size(0), -1)", "x.view(-1, 64)").split("model = MyModel()")[0]
    error = "ValueError: Expected input batch_size (3600) to match target batch_size (4)."
    run = failed(error, "loss = criterion(output, y)", sources={"model.py": text})
    (finding,) = explained(run)
    assert finding.location is not None and finding.location.line == 16
    assert "(4, 64, 30, 30) into (3600, 64)" in words([finding])
    assert "3600 = 4·900" in words([finding])
