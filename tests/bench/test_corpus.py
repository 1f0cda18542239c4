"""The mutation operators: small edits, in the place they say, that compile and repeat."""

from __future__ import annotations

import re

import pytest
from bench.corpus import truth
from bench.corpus.operators import Change, Operator, all_operators
from bench.corpus.plan import choose
from bench.corpus.program import HALVES, Mutant, Program, is_python, mutants, programs
from bench.corpus.source import Edit, Source, apply

from traindx.causes import all_causes

SCRIPT = '''"""A classifier – with a dash that takes three bytes."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 4
LR = 1e-2


class Net(nn.Module):
    def __init__(self, hidden=16):
        super().__init__()
        self.fc1 = nn.Linear(8, hidden)
        self.norm = nn.BatchNorm1d(hidden)
        self.drop = nn.Dropout(0.1)
        self.out = nn.Linear(hidden, 3)

    def forward(self, x):
        h = F.relu(self.norm(self.fc1(x)))
        h = self.drop(h)
        return self.out(h)


def main():
    torch.manual_seed(0)
    X_train, y_train = torch.randn(64, 8), torch.randint(0, 3, (64,))
    X_val, y_val = torch.randn(32, 8), torch.randint(0, 3, (32,))
    train_loader = DataLoader(TensorDataset(X_train, y_train), batch_size=8, shuffle=True)
    val_loader = DataLoader(TensorDataset(X_val, y_val), batch_size=32)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=0.9)
    for epoch in range(EPOCHS):
        model.train()
        total = 0.0
        for xb, yb in train_loader:
            optimizer.zero_grad()
            logits = model(xb)
            loss = F.cross_entropy(logits, yb)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            total += loss.item()
        model.eval()
        correct = 0
        with torch.no_grad():
            for xb, yb in val_loader:
                correct += (model(xb).argmax(1) == yb).sum().item()
        print(f"epoch {epoch} loss {total:.3f} acc {correct / len(val_loader.dataset):.3f}")
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "e": 1}, "c.pt")


main()
'''
LEAST_APPLICABLE = 110  # of the operators, on this script alone


def program(text: str = SCRIPT) -> Program:
    return Program(
        half="develop",
        name="tiny",
        family="mlp",
        framework="plain",
        command=("python", "train.py"),
        ranks=1,
        metric=re.compile(r"acc (\S+)"),
        loss=None,
        is_higher_better=True,
        files={"train.py": text},
    )


def changes(operator: Operator) -> list[Change]:
    source = Source("train.py", SCRIPT)
    return [c for s in operator.strengths for c in operator.rule(source, s)]


@pytest.mark.parametrize("operator", all_operators(), ids=lambda o: o.name)
def test_mutants_compile_and_differ_where_they_say(operator: Operator) -> None:
    source = Source("train.py", SCRIPT)
    for change in changes(operator):
        text, line = apply(source, change.edits, change.at)
        assert is_python(text), text
        assert text != SCRIPT
        assert 1 <= line <= len(text.splitlines())
        if isinstance(change.at, Edit):
            first = change.at.text.strip("\n").split("\n")[0].strip()
            assert first in text.splitlines()[line - 1], (line, text)
        else:  # something was taken away: what is left beside it is named
            assert len(text.splitlines()[line - 1].strip()) > 0


def test_most_operators_apply_to_an_ordinary_script() -> None:
    assert sum(bool(changes(o)) for o in all_operators()) >= LEAST_APPLICABLE


def test_causes_are_those_of_the_catalogue() -> None:
    for operator in all_operators():
        named = {operator.cause, *operator.accepted} - {None}
        assert named <= set(all_causes()), operator.name


def test_the_choice_repeats_and_names_are_unique() -> None:
    first, second = (choose([program()], all_operators(), "seed") for _ in range(2))
    assert first == second
    names = [m.name for m in first]
    assert len(set(names)) == len(names)


def only(name: str, strength: float) -> Mutant:
    operator = next(o for o in all_operators() if o.name == name)
    return next(iter(mutants(program(), operator, strength)))


def test_a_rate_is_changed_where_it_is_written() -> None:
    mutant = only("rate-raised", 100)
    assert "LR = 1\n" in mutant.program.files["train.py"]
    assert mutant.line == SCRIPT[: SCRIPT.index("LR =")].count("\n") + 1


def test_a_missing_step_is_placed_at_the_backward_pass() -> None:
    mutant = only("step-taken-away", 1)
    text = mutant.program.files["train.py"]
    assert "optimizer.step()" not in text
    assert text.splitlines()[mutant.line - 1].strip() == "loss.backward()"


def test_a_with_block_is_dedented() -> None:
    text = only("no-grad-taken-away", 1).program.files["train.py"]
    assert "no_grad" not in text
    assert "\n        for xb, yb in val_loader:\n" in text


def test_gaps_are_counted_in_healthy_spreads() -> None:
    healthy = truth.Health((0.90, 0.92, 0.94), is_higher_better=True)
    assert healthy.gap(0.88) == pytest.approx(1.0)
    assert healthy.gap(0.99) < 0
    assert healthy.gap(float("nan")) == float("inf")
    falling = truth.Health((1.0, 1.0, 1.0), is_higher_better=False)
    assert falling.gap(1.1) == pytest.approx(5.0)


def test_a_course_is_compared_without_clocks() -> None:
    first = "2026-01-01 10:00:00,123 INFO loss 0.5\n 10%|# | 3/30 [00:01<00:09, 3.1it/s]\n"
    second = "2026-01-02 11:30:10,456 INFO loss 0.5\n"
    assert truth.course(first)[:1] == truth.course(second)[:1]


@pytest.mark.parametrize("half", HALVES)
def test_programs_know_nothing_of_the_bench(half: str) -> None:
    found = programs(half)
    assert len(found) >= 10
    for each in found:
        assert each.metric.groups == 1
        assert not any("traindx" in text or "bench" in text for text in each.files.values())
