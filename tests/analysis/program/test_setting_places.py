"""A cause that is about a setting points at the place where the source sets it."""

from __future__ import annotations

import pytest

from traindx.analysis.program import project_of
from traindx.analysis.program.setting_places import place_of_setting
from traindx.examples import make_run
from traindx.model.findings import Finding, Hypothesis, Location, Strength

LOOP = """
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
for x, y in loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
"""


def place(cause: str, *heads: str) -> str:
    """Return the text of the line that a cause points at."""
    head = "import torch\nfrom torch import nn\nmodel = nn.Linear(4, 2)\n"
    text = head + "\n".join(heads) + LOOP
    found = place_of_setting(project_of(make_run(sources={"train.py": text})), cause)
    return text.split("\n")[found.line - 1].strip() if found is not None else ""


@pytest.mark.parametrize(
    ("heads", "wanted"),
    [
        (["optimizer = torch.optim.SGD(model.parameters(), lr=5.0)"], "optimizer ="),
        (["optimizer = torch.optim.SGD(model.parameters(), 5.0)"], "optimizer ="),
        (["RATE = 5.0", "optimizer = torch.optim.SGD(model.parameters(), lr=RATE)"], "RATE ="),
        (
            ["c = {'rate': 5.0}", "optimizer = torch.optim.SGD(model.parameters(), lr=c['rate'])"],
            "c =",
        ),
        (
            [
                "parser.add_argument('--lr', type=float, default=5.0)",
                "optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)",
            ],
            "parser.",
        ),
        (["optimizer = torch.optim.SGD(model.parameters(), lr=cfg.lr)"], "optimizer ="),
    ],
)
def test_a_rate_is_found_where_its_number_stands(heads: list[str], wanted: str) -> None:
    assert place("lr-too-high", *heads).startswith(wanted)


def test_other_settings_and_calls_are_found() -> None:
    made = "optimizer = torch.optim.AdamW(model.parameters(), weight_decay=9.0)"
    assert place("weight-decay-too-high", made) == made
    assert place("gradient-clipping-too-tight", made).startswith("torch.nn.utils.clip")
    assert place("lr-schedule-misuse", made) == "scheduler.step()"


def test_two_rates_leave_the_place_open() -> None:
    heads = [f"{n} = torch.optim.SGD(model.parameters(), lr=0.1)" for n in ("optimizer", "second")]
    assert not place("lr-too-high", *heads)


def test_what_shows_a_cause_comes_before_the_setting() -> None:
    setting, line = Location("train.py", 3, 3), Location("train.py", 9, 9)
    fits = Finding("c", Strength.STRONG, (), {"lr-zero": Strength.STRONG}, location=line)
    shows = Finding("c", Strength.STRONG, (), shows="lr-zero", location=line)
    assert Hypothesis("lr-zero", 0.8, findings=(fits,), place=setting).location == setting
    assert Hypothesis("lr-zero", 0.8, findings=(shows,), place=setting).location == line
