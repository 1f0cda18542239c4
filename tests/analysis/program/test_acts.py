"""Training code in many styles as a sequence of acts: order, followed calls, contexts, guards."""

from __future__ import annotations

import ast
import textwrap

import pytest

from traindx.analysis.program import Project, project_of
from traindx.analysis.program.loops import training_loops
from traindx.analysis.program.written_acts import WrittenAct, acts_of
from traindx.analysis.program.written_kinds import WrittenKind
from traindx.examples import make_run

PREAMBLE = """
import torch
from torch import nn, optim
import torch.nn.functional as F

model = nn.Linear(4, 2)
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(model.parameters(), lr=0.1)
"""
RIGHT = ["zero_grad", "forward", "loss", "backward", "step"]


def project(**files: str) -> Project:
    texts = {f"{name}.py": textwrap.dedent(text) for name, text in files.items()}
    return project_of(make_run(sources=texts))


def top_level(project_: Project, name: str = "train") -> list[WrittenAct]:
    module = project_.by_name[name]
    return acts_of(project_, module, module.tree)


def order(body: str) -> list[str]:
    return [a.do.value for a in top_level(project(train=PREAMBLE + textwrap.dedent(body)))]


STYLES = {
    "a plain loop": """
        for x, y in loader:
            optimizer.zero_grad()
            output = model(x)
            loss = criterion(output, y)
            loss.backward()
            optimizer.step()
        """,
    "a nested expression": """
        for x, y in loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
        """,
    "a functional loss": """
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        """,
    "a function": """
        def train_step(net, opt, x, y):
            opt.zero_grad()
            loss = criterion(net(x), y)
            loss.backward()
            opt.step()

        for x, y in loader:
            train_step(model, optimizer, x, y)
        """,
    "functions in functions": """
        def update(loss):
            loss.backward()
            optimizer.step()

        def train_step(x, y):
            optimizer.zero_grad()
            update(criterion(model(x), y))

        def main():
            for x, y in loader:
                train_step(x, y)

        if __name__ == "__main__":
            main()
        """,
    "a while loop": """
        while step < 100:
            optimizer.zero_grad()
            loss = criterion(model(next(batches)), y)
            loss.backward()
            optimizer.step()
        """,
    "a try block": """
        for x, y in loader:
            try:
                optimizer.zero_grad()
                loss = criterion(model(x), y)
                loss.backward()
            finally:
                optimizer.step()
        """,
}


@pytest.mark.parametrize("style", STYLES)
def test_order(style: str) -> None:
    assert order(STYLES[style]) == RIGHT


def test_modes_and_scaler() -> None:
    acts = order(
        """
        scaler = torch.amp.GradScaler("cuda")
        for x, y in loader:
            model.train()
            scaler.scale(criterion(model(x), y)).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            model.eval()
        """
    )
    assert acts == ["train_mode", "forward", "loss", "backward", "unscale", "clip",
                    "scaler_step", "scaler_update", "eval_mode"]  # fmt: skip


def test_train_false_is_evaluation() -> None:
    assert order("model.train(False)\nfor x, y in loader:\n    criterion(model(x), y)") == [
        "eval_mode",
        "forward",
        "loss",
    ]


def test_methods_of_a_class_are_followed() -> None:
    files = PREAMBLE + textwrap.dedent(
        """
        class Trainer:
            def __init__(self):
                self.model, self.optimizer = model, optim.Adam(model.parameters())

            def step(self, x, y):
                self.optimizer.zero_grad()
                loss = criterion(self.model(x), y)
                loss.backward()
                self.optimizer.step()

            def fit(self, loader):
                for x, y in loader:
                    self.step(x, y)
        """
    )
    made = project(train=files)
    module = made.by_name["train"]
    acts = acts_of(made, module, module.functions["Trainer.fit"])
    assert [a.do.value for a in acts] == RIGHT
    assert acts[0].value.kind is WrittenKind.OPTIMIZER and acts[0].value.is_certain


def test_calls_are_followed_across_files() -> None:
    engine = """
        import torch
        def train_one_epoch(model, loader, optimizer, criterion):
            for x, y in loader:
                optimizer.zero_grad()
                loss = criterion(model(x), y)
                loss.backward()
                optimizer.step()
        """
    main = (
        PREAMBLE
        + "from engine import train_one_epoch\n"
        + textwrap.dedent(
            """
        for epoch in range(3):
            train_one_epoch(model, loader, optimizer, criterion)
        """
        )
    )
    made = project(engine=engine, main=main)
    acts = top_level(made, "main")
    assert [a.do.value for a in acts] == RIGHT
    assert acts[-1].value.made_by == "torch.optim.SGD"
    assert [loop.module.name for loop in training_loops(made)] == ["main"]


def test_a_library_file_of_the_same_name_is_not_the_users() -> None:
    made = project(
        data="def DataLoader(x):\n    return x\n",
        train="from torch.utils.data import DataLoader\nloader = DataLoader(x)\n",
    )
    assert made.find_function(made.by_name["train"], "DataLoader") is None


def test_loops_and_guards() -> None:
    acts = top_level(
        project(
            train=PREAMBLE
            + textwrap.dedent(
                """
                for epoch in range(3):
                    for i, (x, y) in enumerate(loader):
                        criterion(model(x), y).backward()
                        if (i + 1) % 4 == 0:
                            optimizer.step()
                            optimizer.zero_grad()
                """
            )
        )
    )
    backward, step = acts[2], acts[3]
    assert len(backward.loops) == len(step.loops) == 2
    assert backward.guards == () and ast.unparse(step.guards[0]) == "(i + 1) % 4 == 0"


def test_contexts_from_blocks_and_decorators() -> None:
    body = """
        @torch.no_grad()
        def evaluate(net):
            for x in val_loader:
                net(x)

        evaluate(model)
        with torch.inference_mode(), torch.autocast("cuda"):
            model(x)
        """
    acts = top_level(project(train=PREAMBLE + textwrap.dedent(body)))
    assert [a.contexts for a in acts] == [
        ("torch.no_grad",),
        ("torch.inference_mode", "torch.autocast"),
    ]


def test_recursion_ends() -> None:
    assert order("def f(x):\n    loss.backward()\n    f(x)\nf(1)\n") == ["backward"]


def test_updates_by_hand() -> None:
    acts = order(
        """
        for x, y in loader:
            F.mse_loss(model(x), y).backward()
            with torch.no_grad():
                for p in model.parameters():
                    p -= 0.1 * p.grad
                    p.grad.zero_()
        """
    )
    assert acts == ["forward", "loss", "backward", "manual_update", "zero_grad"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("test_model", PREAMBLE),
        ("model", "import pytest\n" + PREAMBLE),
        ("train", "import jax\nimport optax\n"),
    ],
)
def test_tests_and_other_frameworks_are_left_out(name: str, text: str) -> None:
    assert project(**{name: text}).training_modules == ()
