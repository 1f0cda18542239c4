"""Models that libraries make by name."""

from __future__ import annotations

import pytest

from traindx.analysis.program.execution.model_zoo import makes_model, mode_dependent_kinds
from traindx.analysis.program.execution.values import Answer
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.modes import mode_dependent
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run


@pytest.mark.parametrize(
    ("name", "is_model"),
    [
        ("torchvision.models.resnet18", True),
        ("torchvision.models.segmentation.fcn_resnet50", True),
        ("timm.create_model", True),
        ("torchvision.models.list_models", False),
        ("torchvision.models.ResNet18_Weights", False),
        ("torchvision.transforms.functional.resize", False),
    ],
)
def test_what_makes_a_model(name: str, is_model: bool) -> None:
    assert makes_model(name) is is_model


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("resnet50", ["BatchNorm2d"]),
        ("vgg16", ["Dropout"]),
        ("vgg16_bn", ["BatchNorm2d", "Dropout"]),
        ("vit_b_16", []),
    ],
)
def test_what_in_it_depends_on_its_mode(name: str, kinds: list[str]) -> None:
    assert mode_dependent_kinds(f"torchvision.models.{name}") == kinds


@pytest.mark.parametrize(("before", "mode"), [("", Answer.YES), ("net.eval()", Answer.NO)])
def test_it_begins_in_training_mode_and_stays_itself_when_moved(before: str, mode: Answer) -> None:
    text = f"import torchvision\nnet = torchvision.models.resnet18().to('cuda')\n{before}\nnet(x)\n"
    story = program_of(make_run(sources={"t.py": text})).stories[0]
    forward = story.does(Do.FORWARD)[0]
    assert forward.event.is_training is mode
    assert mode_dependent(story, forward.subject) == ["BatchNorm2d"]
