"""What models are made of, where their values go, and what their weights begin with."""

from __future__ import annotations

import textwrap

import pytest

from traindx.analysis.program.execution.values import Answer, Result
from traindx.analysis.program.training.initialisation import fills, successions
from traindx.analysis.program.training.layers import (
    assigned,
    forward_passes,
    has_weights,
    is_weightless,
    layer_kind,
    registered,
    setting,
    size,
)
from traindx.analysis.program.training.linearity import LayerRow, Linearity
from traindx.analysis.program.training.program import Story, program_of
from traindx.analysis.program.training.tensors import (
    comes_from,
    is_number,
    is_tensor,
    left_in_place,
)
from traindx.examples import make_run

PREAMBLE = """
import torch
from torch import nn
import torch.nn.functional as F
"""
NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 2)
        {more}

    def forward(self, x):
        {body}

out = Net()(torch.randn(4, 8))
"""


def story(text: str) -> Story:
    run = make_run(sources={"train.py": PREAMBLE + textwrap.dedent(text)})
    return program_of(run).stories[0]


def net(body: str, more: str = "pass") -> Story:
    return story(NET.format(body=body, more=more))


def made(found: Story, name: str) -> Result:
    value = next(a.value for a in assigned(found.events) if a.name == name)
    assert isinstance(value, Result)
    return value


@pytest.mark.parametrize(
    ("layer", "answer"),
    [
        ("nn.Linear(2, 2)", Answer.YES),
        ("nn.ReLU()", Answer.NO),
        ("nn.LayerNorm(2, elementwise_affine=False)", Answer.NO),
        ("nn.InstanceNorm1d(2)", Answer.NO),
        ("nn.Parameter(torch.zeros(2), requires_grad=False)", Answer.NO),
        ("nn.Sequential(nn.ReLU(), nn.Linear(2, 2))", Answer.YES),
        ("nn.ModuleList([nn.ReLU()])", Answer.NO),
        ("make()", Answer.UNKNOWN),
    ],
)
def test_which_layers_have_weights(layer: str, answer: Answer) -> None:
    found = net("return self.first(x)", f"self.part = {layer}")
    assert has_weights(made(found, "part")) is answer


def test_settings_by_position_name_and_default() -> None:
    found = net("return x", "self.conv = nn.Conv2d(3, out_channels=4, kernel_size=5)")
    conv = made(found, "conv")
    assert (size(conv, "in_channels"), size(conv, "out_channels")) == (3, 4)
    assert size(conv, "groups") == 1 and setting(conv, "nonsense") is None


def test_plain_lists_register_nothing() -> None:
    found = net(
        "return x", "self.kept = nn.ModuleList([nn.GRU(2, 2)]); self.lost = [nn.LSTM(2, 2)]"
    )
    model = next(a.model for a in assigned(found.events))
    kinds = {layer_kind(part) for part in registered(model)}
    assert "GRU" in kinds and "LSTM" not in kinds


@pytest.mark.parametrize(
    ("body", "is_lost"),
    [
        ("g = self.first(x); return self.second(x)", True),
        ("g = self.first(x).sigmoid(); print(g); return x", True),
        ("return self.second(self.first(x))", False),
        ("out = x.clone(); out[:, 0] = self.first(x)[:, 0]; return out", False),
        ("self.aux = self.first(x); return x", False),
        ("hook(self.first(x)); return x", False),
        ("parts = []; parts.append(self.first(x)); return torch.cat(parts)", False),
        ("return x[self.first(x).argmax(1)]", False),
    ],
)
def test_what_nothing_comes_of(body: str, is_lost: bool) -> None:
    found = net(body)
    call = forward_passes(found, made(found, "first"))[0]
    assert call.result is not None
    assert found.flow.is_lost(call.result) is is_lost


@pytest.mark.parametrize(
    ("between", "is_bent"),
    [("h", False), ("h * 0.5 + 1", False), ("h.relu()", True), ("h * h", True), ("bend(h)", True)],
)
def test_what_bends_between_two_layers(between: str, is_bent: bool) -> None:
    found = net(f"h = self.first(x); return self.second({between})")
    linearity = Linearity(found.events, found.flow)
    longest = max(linearity.rows(), key=lambda row: len(row.calls))
    assert (len(longest.calls) < 2) is is_bent
    assert linearity.is_bent(LayerRow(tuple(linearity.calls))) is is_bent


def test_chains_that_nothing_calls_are_run() -> None:
    run = make_run(sources={"m.py": PREAMBLE + "m = nn.Sequential(nn.Linear(2, 2), nn.Tanh())"})
    every = [e for s in program_of(run).stories for e in s.events]
    assert {layer_kind(e.receiver) for e in every if e.name == "()"} >= {"Linear", "Tanh"}


@pytest.mark.parametrize(
    ("names", "given", "answer"),
    [
        ("a, b", "a, b", Answer.YES),
        ("a, b", "b", Answer.UNKNOWN),  # the first may count batches
        ("i, b", "i, b", Answer.UNKNOWN),
        ("a, (c, b)", "c, b", Answer.YES),
    ],
)
def test_a_part_of_a_batch_may_stand_behind_a_counter(
    names: str, given: str, answer: Answer
) -> None:
    found = story(
        f"class A: pass\nk = A()\nfor {names} in loader:\n    k.kept = b\n    use({given})\n"
    )
    kept = next(e.args[0] for e in found.events if e.name == "kept")
    assert is_tensor(found, kept) is answer


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        ("torch.zeros(3)", Answer.YES),
        ("nn.Linear(2, 2)(x)", Answer.YES),
        ("x.relu() + torch.ones(3)", Answer.YES),
        ("7", Answer.NO),
        ("load()", Answer.UNKNOWN),
        ("torch.device('cpu')", Answer.UNKNOWN),
    ],
)
def test_which_values_are_tensors(value: str, answer: Answer) -> None:
    found = story(f"class A: pass\na = A()\na.kept = {value}\n")
    kept = next(e.args[0] for e in found.events if e.name == "kept")
    assert is_tensor(found, kept) is answer


def test_sizes_are_numbers_and_carry_no_tensor_along() -> None:
    found = story("""
        class A: pass
        a = A()
        b, t = x.shape
        a.size, a.length, a.sum = t, len(x), x.sum() + t
        """)
    kept = {e.name: e.args[0] for e in found.events if e.name in ("size", "length", "sum")}
    assert is_number(kept["size"]) and is_number(kept["length"]) and not is_number(kept["sum"])
    source = next(e.receiver for e in found.events if e.name == ".sum")
    assert source is not None
    assert comes_from(kept["sum"], [source]) and not comes_from(kept["size"], [source])


@pytest.mark.parametrize(
    ("write", "value"),
    [
        ("nn.init.zeros_(self.first.weight)", 0.0),
        ("nn.init.constant_(self.first.weight, 0.5)", 0.5),
        ("self.first.weight.data.fill_(2)", 2.0),
        ("nn.init.zeros_(self.first.weight); nn.init.normal_(self.first.weight)", None),
        ("nn.init.zeros_(self.first.bias)", None),
        ("self.apply(lambda m: nn.init.ones_(m.weight) if isinstance(m, nn.Linear) else m)", 1.0),
    ],
)
def test_weights_that_are_left_at_a_constant(write: str, value: float | None) -> None:
    found = net("return self.second(self.first(x).relu())", write)
    layer = made(found, "first")
    filled = {id(f.owner): f.value for f in fills(found)}
    assert filled.get(id(layer)) == value
    assert any(a is layer and b is made(found, "second") for a, b in successions(found.events))


def test_dataclasses_and_decorated_classes_are_built() -> None:
    found = story("""
        from dataclasses import dataclass, field
        BLOCKS = {}
        def register(name):
            def apply(cls):
                BLOCKS[name] = cls
                return cls
            return apply
        @register("wide")
        @dataclass(eq=False)
        class Wide(nn.Module):
            width: int = 8
            def __post_init__(self):
                self.fc = nn.Linear(self.width, 2)
        model = BLOCKS["wide"]()
        """)
    assert size(made(found, "fc"), "in_features") == 8


@pytest.mark.parametrize(("line", "is_left"), [
    ("kept = 1 - made.cumsum(0)", True),
    ("kept = nn.Parameter(made)", False),
    ("kept = made.max().item() + 1", False),
    ("kept = made.to('cuda') * 2", False),
    ("kept = made.cuda() if gpu else made", False),
    ("kept = made.cuda().view(2, 4) if gpu else made.view(2, 4)", False),
    ("import moving; kept = moving.placed(made)", False),
])  # fmt: skip
def test_a_tensor_that_is_left_where_it_was_made(line: str, is_left: bool) -> None:
    text = PREAMBLE + f"made = torch.ones(8)\n{line}\nprint(kept)"
    story = program_of(make_run(sources={"t.py": text})).stories[0]
    values = {a.name: a.value for a in story.execution.assignments}
    assert any(v is values["kept"] for v in left_in_place(story, values["made"])) is is_left


@pytest.mark.parametrize(("kept", "is_bare"), [
    ("self.criterion = nn.KLDivLoss()", True),
    ("self.rate, self.act = 0.1, nn.ReLU()", True),
    ("self.fc = nn.Linear(4, 2)", False),
    ("self.net = timm.create_model('vit')", False),
    ("self.scale = nn.Parameter(torch.ones(1))", False),
])  # fmt: skip
def test_a_module_without_weights(kept: str, is_bare: bool) -> None:
    text = f"{PREAMBLE}import timm\nclass Part(nn.Module):\n    def __init__(self):\n"
    text += f"        super().__init__()\n        {kept}\npart = Part()\n"
    story = program_of(make_run(sources={"t.py": text})).stories[0]
    part = next(a.value for a in story.execution.assignments if a.name == "part")
    assert is_weightless(part) is is_bare


def test_a_row_is_of_layers_where_a_module_gives_back_what_a_layer_made() -> None:
    text = PREAMBLE + (
        "class Layer(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.fc = nn.Linear(8, 8)\n"
        "    def forward(self, x):\n        return self.fc(x)\n"
        "net = nn.Sequential(Layer(), Layer(), Layer())\nnet(torch.rand(2, 8))\n"
    )
    story = program_of(make_run(sources={"t.py": text})).stories[0]
    rows = list(Linearity(story.events, story.flow).rows())
    assert rows and all(len(row.calls) == len(row.layers) for row in rows)
