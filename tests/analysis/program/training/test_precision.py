"""Number types of tensors and models."""

from __future__ import annotations

import pytest

from traindx.analysis.program.execution.values import Result
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.precision import autocast_type, conversion_of, half_cast
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import make_run


def story_of(text: str) -> Story:
    start = "import torch\nfrom torch import nn\n"
    return program_of(make_run(sources={"train.py": start + text})).stories[0]


@pytest.mark.parametrize(
    ("loss", "is_cast"),
    [
        ("loss.half() * 8", True),
        ("loss.to(torch.float16).mean()", True),
        ("loss.to(torch.bfloat16)", False),
        ("loss * 8", False),
        ("criterion(out, y.half())", False),
    ],
)
def test_a_cast_to_half_precision(loss: str, is_cast: bool) -> None:
    story = story_of(f"({loss}).backward()\n")
    assert (half_cast(story.does(Do.BACKWARD)[0].subject) is not None) is is_cast


@pytest.mark.parametrize(
    ("context", "dtype"),
    [
        ('torch.autocast("cuda")', "float16"),
        ("torch.cuda.amp.autocast()", "float16"),
        ('torch.autocast("cuda", dtype=torch.bfloat16)', "bfloat16"),
        ('torch.autocast("cpu")', ""),
        ('torch.autocast("cuda", enabled=flag)', ""),
        ('torch.autocast("cuda", dtype=kind)', ""),
    ],
)
def test_the_type_of_autocast(context: str, dtype: str) -> None:
    story = story_of(f"with {context}:\n    y = model(x)\n")
    (found,) = {c for e in story.events for c in e.contexts}
    assert isinstance(found, Result) and autocast_type(found) == dtype


@pytest.mark.parametrize(
    ("lines", "dtype", "is_mixed"),
    [
        ("model.half()", "float16", False),
        ("model = model.to(torch.float16).cuda()", "float16", False),
        ("model.half()\nmodel.float()", "float32", False),
        ("model.to(torch.ones(2).half())", "float16", False),
        ("kept = torch.ones(2).bfloat16()\nmodel.to(dtype=kept.dtype)", "bfloat16", False),
        ("model.to(device)", None, False),
        ("model = nn.Sequential(nn.Linear(2, 2, dtype=torch.float16))", "float16", False),
        ("model = nn.Sequential(nn.Linear(2, 2))\nmodel.apply(nn.Module.half)", None, False),
        (
            "model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())\nfor m in model: m.half()",
            "float16",
            False,
        ),
        (
            "model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))\nmodel[0].half()",
            None,
            False,
        ),
        ("model.half()\nmodel.head = nn.Linear(2, 2)", "float16", True),
        ("model.half()\nadd_lora(model)", "float16", True),
        ("model.cuda()", None, False),
    ],
)
@pytest.mark.parametrize("made", ["model = nn.Linear(2, 2)\n", ""])
def test_the_type_of_a_model(made: str, lines: str, dtype: str | None, is_mixed: bool) -> None:
    story = story_of(f"{made}{lines}\nmodel(x).sum().backward()\n")
    backward = story.does(Do.BACKWARD)[0]
    model = story.does(Do.FORWARD)[0].subject
    assert model is not None
    found = conversion_of(story, model, backward.event)
    assert (found.dtype if found else None) == dtype
    assert found is None or found.is_mixed is is_mixed


def test_the_type_that_a_model_is_loaded_in_by_whatever_way() -> None:
    story = story_of(
        "from transformers import AutoModel\n"
        "if name:\n    model = AutoModel.from_pretrained(name, torch_dtype=torch.bfloat16)\n"
        "else:\n    model = AutoModel.from_config(config, dtype=torch.bfloat16)\n"
        "model(x).sum().backward()\n"
    )
    model = story.does(Do.FORWARD)[0].subject
    assert model is not None
    found = conversion_of(story, model, story.does(Do.BACKWARD)[0].event)
    assert found is not None and found.dtype == "bfloat16" and not found.is_mixed
