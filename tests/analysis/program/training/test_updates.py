"""What becomes of gradients between a backward pass and what follows."""

from __future__ import annotations

import pytest

from traindx.analysis.program.execution.values import Answer, Known
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.program import Story, program_of
from traindx.analysis.program.training.updates import (
    clears,
    group_step,
    happens_with,
    is_handed_on,
    is_trusted,
    late_for,
    period_of,
    repetitions,
    updates,
    writes_gradients,
)
from traindx.examples import make_run

START = """
import torch
from torch import nn
model = nn.Linear(4, 2)
other = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
second = torch.optim.SGD(other.parameters(), lr=0.1)
"""


def story_of(text: str, start: str = START) -> Story:
    return program_of(make_run(sources={"train.py": start + text})).stories[0]


def in_loop(*lines: str) -> Story:
    body = "\n".join(f"        {line}" for line in lines)
    head = "for epoch in range(3):\n    for i, (x, y) in enumerate(loader):\n"
    return story_of(f"{head}        loss = nn.functional.mse_loss(model(x), y)\n{body}\n")


def test_a_step_belongs_to_the_last_backward_pass_of_its_turn() -> None:
    story = in_loop("loss.backward()", "optimizer.step()")
    found = list(updates(story))
    assert len(found) == 4  # two epochs of two batches
    assert all(u.backward.event.turns == u.step.event.turns for u in found)


def test_a_step_on_the_other_way_is_none_of_a_backward_pass() -> None:
    story = in_loop("if flag:", "    loss.backward()", "else:", "    optimizer.step()")
    assert not list(updates(story))


def test_repetitions_are_of_one_loop_and_leave_out_new_epochs() -> None:
    story = in_loop("loss.backward()", "optimizer.step()")
    found = list(repetitions(story))
    assert [r.loop.site.node.lineno for r in found] == [9, 9]  # type: ignore[attr-defined]
    assert all(r.between.does(Do.STEP) for r in found)


@pytest.mark.parametrize(
    ("head", "is_group"),
    [
        ("for a, b in zip(x.chunk(4), y.chunk(4)):", True),
        ("for i, (a, b) in enumerate(zip(x.chunk(4), y.chunk(4))):", True),
        ("for i, a in enumerate(x.split(4)):", True),
        ("for a, b in loaders[x]:", False),
    ],
)
def test_a_step_after_the_micro_batches_of_an_update(head: str, is_group: bool) -> None:
    story = story_of(f"""
for x, y in loader:
    optimizer.zero_grad()
    {head}
        nn.functional.mse_loss(model(a), y).backward()
    optimizer.step()
""")
    assert any(group_step(r) for r in repetitions(story)) is is_group


def test_repetitions_in_a_loop_over_a_generator() -> None:
    story = story_of(
        "def batches():\n    for i in range(9):\n        yield x, y\n"
        "for x, y in batches():\n    model(x).sum().backward()\n    optimizer.step()\n"
    )
    assert len(list(repetitions(story))) == 1


@pytest.mark.parametrize(
    ("clearing", "answer"),
    [
        ("optimizer.zero_grad()", Answer.YES),
        ("model.zero_grad()", Answer.YES),
        ("second.zero_grad()", Answer.NO),
        ("other.zero_grad()", Answer.NO),
        ("unseen.zero_grad()", Answer.UNKNOWN),
    ],
)
def test_what_clears_the_gradients_of_an_optimizer(clearing: str, answer: Answer) -> None:
    story = story_of(f"{clearing}\noptimizer.step()\n")
    (step,), (zero,) = story.does(Do.STEP), story.does(Do.ZERO_GRAD)
    assert step.subject is not None
    assert clears(zero, step.subject, story) is answer


@pytest.mark.parametrize(
    ("line", "is_written"),
    [
        ("p.grad = g", True),
        ("p.grad.copy_(g)", True),
        ("setattr(p, 'grad', g)", True),
        ("p.grad = None", False),
        ("p.grad.zero_()", False),
        ("p.grad.clamp_(-1, 1)", False),
        ("torch._foreach_zero_([p.grad for p in model.parameters()])", False),
    ],
)
def test_gradients_written_by_hand(line: str, is_written: bool) -> None:
    story = story_of(f"for p in model.parameters():\n    {line}\n")
    assert writes_gradients(story, story.events) is is_written


@pytest.mark.parametrize(
    ("line", "is_handed"),
    [
        ("share(model)", True),
        ("share(optimizer)", True),
        ("share(list(model.parameters()))", True),
        ("share(other)", False),
        ("print(model)", False),
        ("for a, b in zip(average.parameters(), model.parameters()): a.lerp_(b, 0.1)", False),
    ],
)
def test_what_gets_out_of_sight(line: str, is_handed: bool) -> None:
    story = story_of(f"{line}\noptimizer.step()\n")
    (step,) = story.does(Do.STEP)
    assert is_handed_on(story, story.events, step.subject) is is_handed


@pytest.mark.parametrize(
    "condition",
    ["(i + 1) % 4 == 0", "not (i + 1) % 4", "i % 4 == 3 or i == last", "i % every == 0"],
)
def test_the_period_of_a_step(condition: str) -> None:
    story = in_loop("every = 4", f"if {condition}:", "    optimizer.step()")
    period = period_of(story, story.does(Do.STEP)[0].event)
    assert isinstance(period, Known) and period.value == 4


def test_what_happens_on_the_same_conditions() -> None:
    story = in_loop("loss.backward()", "if i % 4 == 0:", "    optimizer.step()")
    step, backward = story.does(Do.STEP)[0].event, story.does(Do.BACKWARD)[0].event
    assert happens_with(backward, step) and not happens_with(step, backward)


def test_an_optimizer_out_of_sight_may_be_of_a_class_in_sight() -> None:
    text = "def train(optimizer):\n    optimizer.step()\n"
    own = "class Warmup:\n    def step(self):\n        self.inner.step()\n"
    for source, is_known in ((text, True), (text + own, False)):
        stories = program_of(make_run(sources={"t.py": "import torch\n" + source})).stories
        story = next(s for s in stories if s.execution.function and s.does(Do.STEP))
        assert is_trusted(story, story.does(Do.STEP)[0].subject) is is_known


def test_two_conditions_on_one_value_exclude_each_other() -> None:
    story = in_loop(
        "if amp:", "    scale(loss).backward()", "else:", "    loss.backward()",
        "if amp:", "    optimizer.step()",
    )  # fmt: skip
    assert all(u.backward.text == "scale(loss)" for u in updates(story))


def test_a_backward_of_one_function_is_repeated_by_the_same_call() -> None:
    story = story_of("""
def learn(net, opt, x):
    opt.zero_grad()
    net(x).sum().backward()
    opt.step()

for x in loader:
    learn(model, optimizer, x)
    learn(other, second, x)
""")
    for repeated in repetitions(story):
        cleared = {id(d.subject) for d in repeated.between.does(Do.ZERO_GRAD)}
        assert {id(d.subject) for d in repeated.between.does(Do.STEP)} == cleared


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("loss.backward()", "{clip}", "optimizer.step()"), False),
        (("loss.backward()", "optimizer.step()", "{clip}"), True),
        (("{clip}", "optimizer.zero_grad()", "loss.backward()", "optimizer.step()"), True),
        (("{clip}", "loss.backward()", "if i % 4 == 0: optimizer.step()"), False),
    ],
)
def test_a_clip_that_is_too_late(lines: tuple[str, ...], expected: bool) -> None:
    clip = "nn.utils.clip_grad_norm_(model.parameters(), 1.0)"
    story = in_loop(*(line.format(clip=clip) for line in lines))
    assert any(late_for(story, c) is not None for c in story.does(Do.CLIP)) is expected
