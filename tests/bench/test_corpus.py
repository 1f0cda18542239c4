"""The mutation operators: small edits, in the place they say, that compile and repeat."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from bench.corpus import truth
from bench.corpus.operators import Change, Form, Operator, all_operators
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
FAULTS = [o for o in all_operators() if o.cause is not None]
FORMS = [(o, f) for o in FAULTS for f in o.forms]
# no program of the corpus resumes a run or standardises its targets in the way they look for
WITHOUT_PROGRAM = {
    *(("optimizer-not-restored", f.name) for o, f in FORMS if o.name == "optimizer-not-restored"),
    ("targets-in-raw-units", "targets-in-raw-units"),
}


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
    return [c for s in operator.strengths for f in operator.forms for c in f.rule(source, s)]


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


@pytest.fixture(scope="module")
def corpus() -> list[Program]:
    """Return all programs, short ones first: most forms apply to the first of them."""
    found = [p for half in HALVES if half != "report-known" for p in programs(half)]
    return sorted(found, key=lambda p: sum(map(len, p.files.values())))


@pytest.mark.parametrize(
    ("operator", "form"),
    [(o, f) for o, f in FORMS if (o.name, f.name) not in WITHOUT_PROGRAM],
    ids=lambda x: x.name,
)
def test_every_form_applies_to_a_program(
    corpus: list[Program], operator: Operator, form: Form
) -> None:
    found = (m for p in corpus for m in mutants(p, operator, operator.strengths[0], form))
    assert next(found, None) is not None


@pytest.mark.parametrize("operator", FAULTS, ids=lambda o: o.name)
def test_a_fault_has_three_forms_and_one_of_them_is_new(operator: Operator) -> None:
    names = [f.name for f in operator.forms]
    assert len(names) >= 3 and len(set(names)) == len(names)
    assert operator.new
    assert len(operator.known) >= 2
    assert not operator.first.is_new and operator.first.name == operator.name


def test_forms_of_one_fault_write_different_programs() -> None:
    """Two forms that leave the same text would be one form under two names."""
    for operator in FAULTS:
        for strength in operator.strengths[:1]:
            texts = [
                {m.program.files["train.py"] for m in mutants(program(), operator, strength, f)}
                for f in operator.forms
            ]
            for i, one in enumerate(texts):
                assert not any(one & other for other in texts[i + 1 :]), operator.name


@pytest.mark.parametrize("half", HALVES)
def test_only_the_reported_half_has_new_forms(half: str) -> None:
    few = sorted(programs(half), key=lambda p: sum(map(len, p.files.values())))[:3]
    chosen = [m for m in choose(few, all_operators(), half) if m.cause is not None]
    assert chosen
    assert {m.form.is_new for m in chosen} == {half == "report"}


def test_further_forms_leave_the_first_ones_as_they_were() -> None:
    plain = [replace(o, forms=o.forms[:1]) for o in all_operators()]
    before = {m.name: m.program.files for m in choose([program()], plain, "develop")}
    after = {m.name: m.program.files for m in choose([program()], all_operators(), "develop")}
    assert before.items() <= after.items()
    causes = len({o.cause for o in FAULTS})
    assert 0 < len(after) - len(before) <= causes


def test_a_restored_optimizer_can_be_forgotten_in_every_form() -> None:
    resumed = "    for epoch in range(EPOCHS):\n"
    text = SCRIPT.replace(
        resumed,
        '    kept = torch.load("c.pt")\n    optimizer.load_state_dict(kept["optimizer"])\n'
        + resumed,
    )
    operator = next(o for o in FAULTS if o.name == "optimizer-not-restored")
    for form in operator.forms:
        assert next(iter(mutants(program(text), operator, 1, form))).form is form


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
