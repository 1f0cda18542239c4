"""What a program does is the same in whatever form it is written; each form here does one thing."""

from __future__ import annotations

import textwrap

import pytest

from traindx.analysis.program.execution.values import Answer, Choice, Instance, Known
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.kinds import Kind
from traindx.analysis.program.training.phases import Unit, loops_of
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import make_run

PREAMBLE = """
import torch
from torch import nn
import torch.nn.functional as F
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
STEP = ["zero_grad", "forward", "backward", "step"]


def stories(**files: str) -> tuple[Story, ...]:
    texts = {f"{name}.py": textwrap.dedent(text) for name, text in files.items()}
    return program_of(make_run(sources=texts)).stories


def story(body: str) -> Story:
    return stories(train=PREAMBLE + textwrap.dedent(body))[0]


def order(found: Story) -> list[str]:
    """What is done in the first turns of all loops, in order."""
    return [
        d.do.value
        for d in found.deeds
        if all(turn.number == 0 or turn.loop.is_whole for turn in d.event.turns)
        and not d.event.within
    ]


FORMS = {
    "a plain loop": """
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
    """,
    "helpers": """
        def forward(net, x, y):
            return F.cross_entropy(net(x), y)
        def learn(opt, loss):
            loss.backward()
            opt.step()
        for x, y in loader:
            optimizer.zero_grad()
            learn(optimizer, forward(model, x, y))
    """,
    "a trainer class": """
        class Trainer:
            def __init__(self, net, opt):
                self.net = net
                self.opt = opt
            def fit(self, data):
                for x, y in data:
                    self.step(x, y)
            def step(self, x, y):
                self.opt.zero_grad()
                F.cross_entropy(self.net(x), y).backward()
                self.opt.step()
        Trainer(model, optimizer).fit(loader)
    """,
    "a closure of an optimizer": """
        for x, y in loader:
            def closure():
                optimizer.zero_grad()
                loss = F.cross_entropy(model(x), y)
                loss.backward()
                return loss
            optimizer.step(closure)
    """,
    "a generator of batches": """
        def batches():
            for i in range(0, len(data), 32):
                yield data[i:i + 32], labels[i:i + 32]
        for x, y in batches():
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
    """,
    "a decorator": """
        def with_update(function):
            def inner(*args):
                optimizer.zero_grad()
                function(*args).backward()
                optimizer.step()
            return inner
        @with_update
        def loss_of(x, y):
            return F.cross_entropy(model(x), y)
        for x, y in loader:
            loss_of(x, y)
    """,
    "a context manager": """
        from contextlib import contextmanager
        @contextmanager
        def updating(opt):
            opt.zero_grad()
            yield
            opt.step()
        for x, y in loader:
            with updating(optimizer):
                F.cross_entropy(model(x), y).backward()
    """,
    "functions in a list": """
        def clear(x, y): optimizer.zero_grad()
        def learn(x, y): F.cross_entropy(model(x), y).backward()
        def update(x, y): optimizer.step()
        for x, y in loader:
            for act in [clear, learn, update]:
                act(x, y)
    """,
    "handlers that are registered": """
        class Engine:
            def __init__(self):
                self.handlers = {"start": [], "end": []}
            def on(self, event):
                def register(function):
                    self.handlers[event].append(function)
                    return function
                return register
            def run(self, data):
                for batch in data:
                    for handler in self.handlers["start"]:
                        handler(batch)
                    for handler in self.handlers["end"]:
                        handler(batch)
        engine = Engine()
        @engine.on("start")
        def compute(batch):
            optimizer.zero_grad()
            F.cross_entropy(model(batch[0]), batch[1]).backward()
        @engine.on("end")
        def update(batch):
            optimizer.step()
        engine.run(loader)
    """,
    "partial and lambda": """
        from functools import partial
        def learn(net, opt, x, y):
            opt.zero_grad()
            F.cross_entropy(net(x), y).backward()
            opt.step()
        step = partial(learn, model, opt=optimizer)
        run = lambda batch: step(x=batch[0], y=batch[1])
        for batch in loader:
            run(batch)
    """,
    "a while loop and next": """
        batches = iter(loader)
        while True:
            try:
                x, y = next(batches)
            except StopIteration:
                break
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
    """,
    "a callable object": """
        class Step:
            def __init__(self, parts): self.net, self.opt = parts
            def __call__(self, batch):
                x, y = batch
                self.opt.zero_grad()
                F.cross_entropy(self.net(x), y).backward()
                self.opt.step()
        step = Step((model, optimizer))
        for batch in loader:
            step(batch)
    """,
}


@pytest.mark.parametrize("form", FORMS)
def test_a_step_is_followed(form: str) -> None:
    assert order(story(FORMS[form])) == STEP


@pytest.mark.parametrize("form", FORMS)
def test_its_values_are_the_same_objects(form: str) -> None:
    found = story(FORMS[form])
    steps = found.does(Do.STEP)
    assert {id(d.subject) for d in steps} == {id(found.made_one("torch.optim.SGD"))}


def test_other_files_are_followed() -> None:
    found = stories(
        engine="""
            def train(net, opt, data, criterion):
                for x, y in data:
                    opt.zero_grad()
                    criterion(net(x), y).backward()
                    opt.step()
        """,
        train=PREAMBLE + "from engine import train\n"
        "train(model, optimizer, loader, nn.CrossEntropyLoss())\n",
    )
    main = next(s for s in found if s.execution.module.name == "train")
    assert order(main) == STEP
    assert len(found) == 2, "what is called needs no story of its own"


def test_lightning_trains_what_it_is_given() -> None:
    found = stories(
        train="""
            import lightning as L
            import torch
            from torch import nn
            class Lit(L.LightningModule):
                def __init__(self):
                    super().__init__()
                    self.fc = nn.Linear(4, 2)
                def training_step(self, batch, index):
                    x, y = batch
                    return nn.functional.cross_entropy(self.fc(x), y)
                def validation_step(self, batch, index):
                    self.log("val", self.fc(batch[0]).sum())
                def configure_optimizers(self):
                    return torch.optim.Adam(self.parameters())
            L.Trainer(max_epochs=3).fit(Lit(), train_loader, val_loader)
        """
    )[0]
    assert order(found)[:4] == ["forward", "zero_grad", "backward", "step"]
    evaluated = [d.event for d in found.does(Do.FORWARD) if d.event.gradients is Answer.NO]
    assert evaluated and all(e.is_training is Answer.NO for e in evaluated)


def test_modes_and_gradients_are_what_holds_then() -> None:
    found = story("""
        class Evaluator:
            def __init__(self, net): self.net = net
            @torch.no_grad()
            def run(self, data):
                self.net.eval()
                for x, y in data:
                    self.net(x)
        check = Evaluator(model)
        for epoch in range(3):
            for x, y in loader:
                F.cross_entropy(model(x), y).backward()
            check.run(val_loader)
    """)
    training = [d.event for d in found.does(Do.FORWARD) if d.event.gradients is Answer.YES]
    evaluating = [d.event for d in found.does(Do.FORWARD) if d.event.gradients is Answer.NO]
    assert [e.is_training for e in training if e.turns[0].number == 0] == [Answer.YES] * 2
    assert {e.is_training for e in training if e.turns[0].number == 1} == {Answer.NO}
    assert {e.is_training for e in evaluating} == {Answer.NO}


def test_an_undecided_condition_is_a_guard_and_a_constant_is_none() -> None:
    found = story("""
        DEBUG = False
        for i, (x, y) in enumerate(loader):
            F.cross_entropy(model(x), y).backward()
            if DEBUG:
                optimizer.zero_grad()
            if (i + 1) % 4 == 0:
                optimizer.step()
    """)
    assert not found.does(Do.ZERO_GRAD)
    assert all(d.event.guards and d.event.guards[-1].holds for d in found.does(Do.STEP))


def test_what_follows_an_early_continue_is_guarded() -> None:
    found = story("""
        for i, (x, y) in enumerate(loader):
            F.cross_entropy(model(x), y).backward()
            if (i + 1) % 4:
                continue
            optimizer.step()
    """)
    assert all(not d.event.guards[-1].holds for d in found.does(Do.STEP))


@pytest.mark.parametrize(
    ("condition", "is_true"),
    [
        ("if ready:\n    optimizer.step()", True),
        ("if not ready:\n    pass\nelse:\n    optimizer.step()", True),
        ("if not not ready:\n    optimizer.step()", True),
        ("if not ready:\n    optimizer.step()", False),
        ("if ready:\n    pass\nelse:\n    optimizer.step()", False),
    ],
)
def test_a_guard_knows_what_is_true(condition: str, is_true: bool) -> None:
    (step,) = stories(train=PREAMBLE + condition)[0].does(Do.STEP)
    (guard,) = step.event.guards
    assert (guard.true_test is not None and "ready" in guard.true_test.names) is is_true


@pytest.mark.parametrize(
    "body",
    [
        """
        class Kept:
            def __init__(self):
                self.state = 0
            def note(self, better):
                if better:
                    self.state = 1
                    return
                self.waited = True
        kept = Kept()
        kept.note(unknown)
        print(kept.state)
        """,
        """
        class Kept:
            def __init__(self):
                self.state = 0
            def note(self, worse):
                if worse:
                    return False
                self.state = 1
                return True
        kept = Kept()
        kept.note(unknown)
        print(kept.state)
        """,
        """
        found = 0
        for x in loader:
            if x > 3:
                found = 1
                break
        print(found)
        """,
        """
        found = 0
        for x in loader:
            if x > 3:
                found = 1
                continue
            other = 2
        print(found)
        """,
    ],
)
def test_what_is_done_before_an_early_end_holds_afterwards(body: str) -> None:
    printed = [e for e in story(body).events if e.name == "builtins.print"]
    (value,) = printed[-1].args
    assert isinstance(value, Choice)
    assert {getattr(o, "value", None) for o in value.options} == {0, 1}


def test_what_held_before_an_early_continue_may_hold_after_the_turn() -> None:
    found = story("""
        best = None
        for x, y in loader:
            if better(x) == 0:
                continue
            best = model(x)
        use(best)
    """)
    (used,) = (e for e in found.events if e.name == "()" and "use" in e.receiver.names)
    assert isinstance(used.args[0], Choice)
    assert any(isinstance(o, Known) and o.value is None for o in used.args[0].options)


UNTIL_THE_END = {
    "a try that breaks": """
        batches = iter(loader)
        while True:
            try:
                x, y = next(batches)
            except StopIteration:
                break
            F.cross_entropy(model(x), y).backward()
    """,
    "a try around it": """
        batches = iter(loader)
        try:
            while True:
                x, y = next(batches)
                F.cross_entropy(model(x), y).backward()
        except StopIteration:
            pass
    """,
    "a default": """
        batches = iter(loader)
        while (batch := next(batches, None)) is not None:
            F.cross_entropy(model(batch[0]), batch[1]).backward()
    """,
}


@pytest.mark.parametrize("form", UNTIL_THE_END)
def test_a_while_loop_goes_over_the_iterator_that_ends_it(form: str) -> None:
    found = story("loader = torch.utils.data.DataLoader(data)\n" + textwrap.dedent(
        UNTIL_THE_END[form]
    ))  # fmt: skip
    (loop,) = loops_of(found)
    assert getattr(loop.over, "maker", "") == "torch.utils.data.DataLoader"
    assert loop.unit is Unit.BATCHES


def test_a_while_loop_over_epochs_takes_no_batches() -> None:
    found = story("""
        epochs = iter(range(3))
        while True:
            try:
                epoch = next(epochs)
            except StopIteration:
                break
            for x, y in loader:
                F.cross_entropy(model(x), y).backward()
    """)
    assert [loop.unit for loop in loops_of(found)] == [Unit.EPOCHS, Unit.BATCHES]


@pytest.mark.parametrize(
    "body",
    [
        "x, y = next(iter(loader))",
        """try:
    x, y = next(batches)
except StopIteration:
    batches = iter(loader)
    x, y = next(batches)""",
    ],
    ids=["the first batch again", "begun anew"],
)
def test_a_while_loop_without_end_goes_over_nothing(body: str) -> None:
    text = textwrap.indent(body + "\nF.cross_entropy(model(x), y).backward()\n", "    ")
    found = story("batches = iter(loader)\nwhile True:\n" + text)
    assert [loop.over for loop in loops_of(found)] == [None]


def test_a_list_beside_a_counter_is_gone_through() -> None:
    found = story("""
        import itertools
        for number, part in zip(itertools.count(), [model, optimizer]):
            part.load_state_dict(held)
    """)
    assert [d.subject for d in found.does(Do.LOAD_STATE)] == [
        *found.made(Kind.MODEL),
        *found.made(Kind.OPTIMIZER),
    ]


def test_a_generator_beside_a_counter_runs_where_it_is_gone_over() -> None:
    found = story("""
        import itertools
        def rows():
            yield torch.zeros(4)
        for number, x in zip(itertools.count(), rows()):
            model(x).sum().backward()
    """)
    (forward,) = (d.event for d in found.does(Do.FORWARD) if not d.event.within)
    assert getattr(forward.args[0], "maker", "") == "torch.zeros"


@pytest.mark.parametrize("name", ["torch", "t", "lib"])
def test_a_function_that_uses_torch_under_any_name_is_followed(name: str) -> None:
    found = stories(
        net=f"""
        import torch as {name}
        def mask(n):
            return {name}.triu({name}.ones(n, n))
        """
    )
    assert "torch.triu" in [e.name for s in found for e in s.events]


def test_a_method_is_followed_that_only_calls_what_trains() -> None:
    found = stories(
        fit="""
        def learn(self, x):
            self.net(x).sum().backward()
        class Learner:
            def __init__(self, net):
                self.net = net
            def fit(self, rows):
                for x in rows:
                    learn(self, x)
        """
    )
    passes = [d for s in found for d in s.does(Do.BACKWARD) if d.event.loops]
    assert passes


def test_a_name_is_of_the_file_that_it_is_imported_from() -> None:
    found = stories(
        train="""
        import torch
        from engine import train
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        train(optimizer)
        """,
        engine="from parts import train",
        parts="""
        def train(optimizer):
            optimizer.step()
        """,
    )
    assert found[0].does(Do.STEP)


def test_a_counter_decides_nothing() -> None:
    found = story("""
        count = 0
        kept = []
        for x, y in loader:
            count += 1
            kept.append(x)
            if count % 100 == 0 and len(kept) > 10:
                optimizer.step()
    """)
    assert found.does(Do.STEP)


def test_phases_in_a_loop_are_told_apart() -> None:
    found = story("""
        loaders = {"train": train_loader, "val": val_loader}
        for phase in ["train", "val"]:
            if phase == "train":
                model.train()
            else:
                model.eval()
            for x, y in loaders[phase]:
                with torch.set_grad_enabled(phase == "train"):
                    loss = F.cross_entropy(model(x), y)
                    if phase == "train":
                        loss.backward()
    """)
    passes = [(d.event.is_training, d.event.gradients) for d in found.does(Do.FORWARD)]
    assert passes == [(Answer.YES, Answer.YES)] * 2 + [(Answer.NO, Answer.NO)] * 2
    assert not any(d.event.guards for d in found.does(Do.BACKWARD))


def test_a_program_without_an_end_is_given_up() -> None:
    found = stories(train="def f(n):\n    for a in n:\n" + "        f(a)\n" * 3 + "f(1)\n")
    assert not found[0].execution.gave_up
    deep = "\n".join(f"{' ' * i}for a{i} in xs:" for i in range(16)) + "\n" + " " * 16 + "print(1)"
    assert stories(train=deep)[0].execution.gave_up


def test_constants_are_computed() -> None:
    found = story("rate = 2 ** 3 * 0.5\nprint(rate, 'a' + 'b')")
    shown = next(e for e in found.events if e.name == "builtins.print")
    assert [a.value for a in shown.args if isinstance(a, Known)] == [4.0, "ab"]


def test_a_forward_method_that_is_called_by_name_is_a_pass() -> None:
    found = story("""
        class Inner(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 2)
            def forward(self, x):
                return self.fc(x)
        class Outer(Inner):
            def forward(self, x):
                return super().forward(x)
        net = Outer()
        net.eval()
        net.forward(data)
    """)
    passes = [e for e in found.events if e.name == "forward" and not e.within]
    assert [e.is_training for e in passes] == [Answer.NO]
    layer = next(e for e in found.events if e.name == "()")
    assert [m for m in layer.within if m is passes[0].receiver] == [passes[0].receiver]


def test_what_is_volatile_may_not_be_recorded() -> None:
    found = story("""
        from torch.autograd import Variable
        model(Variable(data, volatile=True))
        model(Variable(data))
    """)
    passes = [e.gradients for e in found.events if e.name == "()"]
    assert passes == [Answer.UNKNOWN, Answer.YES]


def test_lightning_runs_the_step_once_for_each_optimizer() -> None:
    found = stories(
        gan="""
        import torch
        import lightning as L
        from torch import nn
        class GAN(L.LightningModule):
            def __init__(self):
                super().__init__()
                self.maker, self.critic = nn.Linear(4, 8), nn.Linear(8, 1)
            def training_step(self, batch, batch_idx, optimizer_idx):
                if optimizer_idx == 0:
                    return self.critic(self.maker(batch)).mean()
                return self.critic(batch).mean()
            def configure_optimizers(self):
                first = torch.optim.Adam(self.maker.parameters())
                second = torch.optim.Adam(self.critic.parameters())
                return ([first, second], []) if flag else [first, second]
        """
    )
    steps = [d for s in found for d in s.does(Do.STEP)][:2]
    assert len({id(d.subject) for d in steps}) == 2
    guarded = [d for s in found for d in s.does(Do.BACKWARD) if d.event.guards]
    assert not guarded


def test_of_several_functions_only_those_that_take_the_arguments_are_called() -> None:
    found = story("""
        def three(inputs, outputs, labels):
            return F.mse_loss(outputs, labels)
        def two(outputs, labels):
            return F.l1_loss(outputs, labels)
        criterion = two if flag else three
        criterion(a, b)
    """)
    assert [e.name for e in found.events if e.name.endswith("_loss")] == [
        "torch.nn.functional.l1_loss"
    ]


def test_a_class_may_have_the_name_of_its_base() -> None:
    (found,) = stories(
        train="""
        import torch
        from flax.training.train_state import TrainState
        class TrainState(TrainState):
            pass
        state = TrainState()
        """
    )[:1]
    made = next(a.value for a in found.execution.assignments if a.name == "state")
    assert isinstance(made, Instance)
    assert made.cls.foreign == ("flax.training.train_state.TrainState",)


def test_a_layer_that_is_made_runs_nothing() -> None:
    found = story("""
        class Net(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.width, self.fc = width, nn.Linear(width, 2)
        for trial in range(trials):
            net = Net(data.width)
            net.eval()
    """)
    made = [e for e in found.events if e.name == "torch.nn.Linear"]
    assert made and not any(e.handed_modes for e in made)


def _last_number(body: str) -> object:
    found = story(body)
    made = [a.value for a in found.execution.assignments if a.name == "asked"]
    return made[-1].value if isinstance(made[-1], Known) else None


NUMBERS = {
    "the type of another value": ("asked = type(1)(0.4)", 0),
    "a text that is parsed": ("import yaml\nasked = yaml.safe_load('lr: 0.5')['lr']", 0.5),
    "a number in a text": ("asked = float('1e-3')", 1e-3),
    "the first by a key": (
        "asked = sorted([{'n': 3}, {'n': 1}, {'n': 2}], key=lambda d: d['n'])[0]['n']",
        1,
    ),
    "the last by a key": (
        "asked = sorted([{'n': 3}, {'n': 1}], key=lambda d: d['n'], reverse=True)[0]['n']",
        3,
    ),
    "an order out of sight": ("asked = sorted([3, 1], key=rank)[0]", None),
}


@pytest.mark.parametrize(("body", "number"), NUMBERS.values(), ids=NUMBERS)
def test_numbers_that_python_computes(body: str, number: object) -> None:
    assert _last_number(body) == number


def test_what_a_dictionary_keeps_by_tensor_comes_back() -> None:
    found = story("""
        kept = {}
        for p in model.parameters():
            kept[p] = p.clone()
        for p, old in kept.items():
            p.copy_(old)
            p.grad = None
    """)
    stored = [e for e in found.events if e.name == "grad"]
    assert stored and all(e.receiver is not None and "p" in e.receiver.names for e in stored)


def test_a_list_is_turned_round_in_place() -> None:
    found = story("""
        sizes = [8, 16, 32]
        sizes.reverse()
        first = sizes[0]
        sizes.sort()
        least = sizes[0]
    """)
    values = {a.name: a.value for a in found.execution.assignments}
    assert isinstance(values["first"], Known) and values["first"].value == 32
    assert not isinstance(values["least"], Known)


@pytest.mark.parametrize(
    "body, known",
    [
        ("def f(opt=None):\n    return opt is None\nfound = f(optimizer)", False),
        ("def f(opt=None):\n    return opt is None\nfound = f()", True),
        ("found = not optimizer", False),
        ("other = torch.optim.SGD(model.parameters(), lr=1)\nfound = optimizer is other", False),
        ("same = optimizer\nfound = optimizer is same", True),
        ("found = loader is None", None),
    ],
)
def test_an_object_is_something_and_itself(body: str, known: bool | None) -> None:
    made = story(body).bindings[-1]["found"]
    if known is None:
        assert not isinstance(made, Known) or not isinstance(made.value, bool)
    else:
        assert isinstance(made, Known) and made.value is known


def test_an_object_with_a_length_may_be_false() -> None:
    found = story("""
        class Bag:
            def __len__(self):
                return 0
        bag = Bag()
        if bag:
            optimizer.step()
    """)
    assert [d.do for d in found.deeds] == [Do.STEP] and found.deeds[0].event.guards


def test_a_function_follows_the_branches_of_a_tree() -> None:
    found = story("""
        def steps(tree):
            for branch in tree:
                if isinstance(branch, list):
                    steps(branch)
                else:
                    branch.step()
        steps([optimizer, [optimizer, [optimizer]]])
    """)
    assert len(found.does(Do.STEP)) == 3


def test_an_option_that_a_dictionary_has_not_gives_the_fallback() -> None:
    program = """
        import argparse
        from dataclasses import dataclass, field
        from transformers import HfArgumentParser

        @dataclass
        class Settings:
            split: str = field(default="validation")

        parser = argparse.ArgumentParser()
        parser.add_argument("--split", default="val")
        args = parser.parse_args()
        (settings,) = HfArgumentParser(Settings).parse_args_into_dataclasses()
        parts = {"train": 1, "dev": 2}
        print(parts.get(args.split, "first"), parts.get(settings.split, "second"))
        """
    found = story(program)
    (printed,) = [e for e in found.events if e.name == "builtins.print"]
    assert [getattr(a, "value", None) for a in printed.args] == ["first", "second"]


def test_layers_of_a_list_of_unknown_length_run() -> None:
    text = """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)

    def forward(self, x):
        return torch.tanh(self.a(x))

blocks = nn.ModuleList(Block() for _ in range(int(depth)))
for block in blocks:
    x = block(x)
"""
    (story,) = program_of(make_run(sources={"t.py": text})).stories[:1]
    runs = [e for e in story.events if e.name == "torch.tanh"]
    assert len(runs) == 2
    assert len({id(e.within[-1]) for e in runs}) == 2


HOOKED = """
import torch
from torch import nn
net, kept = nn.Sequential(nn.Linear(4, 4), nn.ReLU()), {{}}

def keep(module, args, output):
    kept["out"] = output
    {returns}

handle = net[0].register_forward_hook(keep)
{after}
out = net(x)
"""


@pytest.mark.parametrize(
    ("returns", "after", "is_kept", "is_replaced"),
    [
        ("return", "pass", True, False),
        ("return torch.zeros(2)", "pass", True, True),
        ("return", "handle.remove()", False, False),
    ],
)
def test_a_forward_hook(returns: str, after: str, is_kept: bool, is_replaced: bool) -> None:
    text = HOOKED.format(returns=returns, after=after)
    story = program_of(make_run(sources={"t.py": text})).stories[0]
    layers = [e for e in story.events if e.name == "()" and e.args]
    linear = layers[1]
    stored = [e.args[0] for e in story.events if e.name == "[]"]
    assert bool(stored) is is_kept
    assert (getattr(linear.result, "maker", "") == "torch.zeros") is is_replaced


@pytest.mark.parametrize(
    ("made", "records"),
    [
        ("(net(x) for x in loader)", Answer.YES),
        ("[net(x) for x in loader]", Answer.NO),
        ("iter([net(x) for x in loader])", Answer.NO),
    ],
)
@pytest.mark.parametrize("used", ["for y in ask(loader): print(y)", "print(sum(ask(loader)))"])
def test_a_generator_runs_where_it_is_gone_over(made: str, records: Answer, used: str) -> None:
    text = f"""
import torch
net = torch.nn.Linear(4, 4)

def ask(loader):
    with torch.no_grad():
        return {made}

{used}
"""
    story = program_of(make_run(sources={"t.py": text})).stories[0]
    assert {d.event.gradients for d in story.does(Do.FORWARD)} == {records}


@pytest.mark.parametrize(
    "move",
    [
        "a, b = [t.to(device) for t in batch]",
        "a, b = (t.to(device) for t in batch)",
        "a, b = map(lambda t: t.to(device), batch)",
        "a, b = moved(batch)",
    ],
)
@pytest.mark.parametrize(
    "rows", ["TensorDataset(x, y)", "Rows()", "random_split(Rows(), [8, 2])[0]"]
)
def test_the_parts_of_a_batch_are_gone_over(move: str, rows: str) -> None:
    text = f"""
from torch.utils.data import DataLoader, Dataset, TensorDataset, random_split

class Rows(Dataset):
    def __getitem__(self, i):
        return x[i], y[i]

def moved(batch):
    return tuple(t.to(device) for t in batch)

for batch in DataLoader({rows}, 4):
    {move}
    print(a, b)
"""
    story = program_of(make_run(sources={"t.py": text})).stories[0]
    call = next(e for e in story.events if e.name == "builtins.print")
    assert [getattr(v.inputs[0], "key", None) for v in call.args] == [0, 1]


@pytest.mark.parametrize(
    ("switch", "records"),
    [
        ("torch.set_grad_enabled(False)\n    yield", Answer.NO),
        ("with torch.no_grad():\n        yield", Answer.YES),
        ("torch.set_grad_enabled(False)\n    yield\n    torch.set_grad_enabled(True)", Answer.YES),
    ],
)
def test_what_a_context_of_ones_own_switches_stays(switch: str, records: Answer) -> None:
    text = f"""
import contextlib
import torch
net = torch.nn.Linear(4, 4)

@contextlib.contextmanager
def evaluating():
    {switch}

with evaluating():
    print(x)
out = net(x)
"""
    story = program_of(make_run(sources={"t.py": text})).stories[0]
    assert [d.event.gradients for d in story.does(Do.FORWARD)] == [records]
