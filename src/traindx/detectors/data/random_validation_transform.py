"""Validation images are augmented at random."""

from traindx.analysis.program.execution.values import (
    Instance,
    PartialCall,
    Result,
    Value,
    origins,
)
from traindx.analysis.program.training.augmentation import augmented_evaluations
from traindx.analysis.program.training.claims import cite, finding
from traindx.analysis.program.training.data import (
    AUGMENTERS,
    Feed,
    Role,
    disturbed_input,
    feeds,
    named_role,
    random_transform,
    split_from,
)
from traindx.analysis.program.training.kinds import names_of
from traindx.analysis.program.training.phases import phase_word
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import make_run
from traindx.model.findings import Finding
from traindx.registry import Findings, Run, detector

CAUSE = "augmentation-in-validation"


@detector(needs=("source",), suggests=("augmentation-in-validation",))
def check(run: Run) -> Findings:
    """Validation or test data pass through random transforms.

    ## What it detects
    A loader or dataset that is used for validation or testing whose examples are changed by random
    numbers: by a random transform of a library, or by the dataset's or the collate function's own
    code (noise, random flips, shifts, holes). Also a composition of transforms that is named for
    validation or testing and holds a random one.

    ## Why it matters
    The metric changes from run to run and is lower than the model deserves; the best checkpoint is
    chosen by luck.

    ## What to do
    Give validation its own transforms: resize, centre crop, normalise, nothing random.

    ## When it is wrong
    Test-time augmentation is random on purpose; names that say so are left alone. So are random
    draws that only choose which part of the data is shown, and draws that are the task: masked
    tokens, two views, noise to be taken away.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        for found in (*_loaded(story), *_given(story), *_named(story), *_augmented(story)):
            place = found.location
            if place not in seen:
                seen.add(place)
                yield found


def _loaded(story: Story) -> Findings:
    """Loaders of held-out data whose batches are disturbed."""
    for feed in feeds(story):
        if feed.role is not Role.HELD_OUT or _is_on_purpose(feed):
            continue
        found = None if feed.example is None else disturbed_input(feed.example)
        found = _split_transform(story, feed) if found is None else found
        if found is not None and found.site is not None:
            yield _finding(found, f"the batches of `{feed.name}` pass through", feed.loader)


def _split_transform(story: Story, feed: Feed) -> Value | None:
    """The random transform of a dataset of which held-out data are a part."""
    whole = None if feed.dataset is None else split_from(feed.dataset)
    if not isinstance(whole, Result) or any(e.name == "transform" for e in story.events):
        return None
    given = (*whole.args, whole.kwargs.get("transform"))
    return next((t for v in given if v is not None and (t := _random_in(v)) is not None), None)


def _augmented(story: Story) -> Findings:
    """Evaluations whose batches pass through an augmentation inside of the loop."""
    for found in augmented_evaluations(story):
        yield finding(
            f"Validation batches pass through `{found.name}`, which is random",
            CAUSE,
            found.call,
            cite(found.call, "called for validation batches, too"),
            cite(found.evaluation.forward, "evaluated here"),
            is_symptom=True,
        )


def _is_on_purpose(feed: Feed) -> bool:
    held = (feed.loader, *(() if feed.dataset is None else (feed.dataset,)))
    return any(_speaks_of_tta(value) for value in held)


def _speaks_of_tta(value: Value) -> bool:
    return any("tta" in name.lower() for name in names_of(value))


def _given(story: Story) -> Findings:
    """Datasets named for held-out data that are given a random transform."""
    for event in story.events:
        made, given = event.result, event.kwargs.get("transform")
        is_made = isinstance(made, (Result, Instance)) and made.site is event.site
        if given is None or made is None or not is_made or _speaks_of_tta(made):
            continue
        found = _random_in(given)
        is_for_training = named_role(given) is Role.TRAIN
        if found is not None and named_role(made) is Role.HELD_OUT and not is_for_training:
            name = made.called()
            yield _finding(found, f"`{name}` passes through", made)


def _named(story: Story) -> Findings:
    """Compositions that go by a name for held-out data."""
    for event in story.events:
        made = event.result
        is_made = isinstance(made, Result) and made.site is event.site
        if not is_made or made is None or not event.name.endswith(".Compose"):
            continue
        held = [n for n in names_of(made) if phase_word(n) in ("validation", "test")]
        found = _random_in(made)
        if found is not None and held and not any("tta" in n.lower() for n in held):
            yield _finding(found, f"`{held[0]}` holds")


def _random_in(transform: Value) -> Value | None:
    """The random transform of a library inside a composition."""
    if isinstance(transform, (Instance, PartialCall)):
        return None
    if not isinstance(transform, Result) or not transform.maker.startswith(AUGMENTERS):
        return None
    return next((v for v in origins(transform, 80) if random_transform(v)), None)


def _finding(found: Value, what: str, used: Value | None = None) -> Finding:
    maker = found.maker if isinstance(found, Result) else ""
    is_transform = random_transform(found)
    name = maker.rsplit(".", 1)[-1] if is_transform else "a random change"
    evidence = [cite(found, f"{name} is random")]
    if used is not None:
        evidence.append(cite(used, "held-out data pass through it"))
    at = used if used is not None else found
    return finding(
        f"Held-out data are augmented at random: {what} {name}",
        CAUSE,
        at,
        *evidence,
        is_symptom=True,
    )


_PROGRAM = """
from torchvision import datasets, transforms

{name} = transforms.Compose([
    transforms.{first},
    transforms.ToTensor(),
])
train_set = datasets.CIFAR10("data", train=True, transform={name})
{dataset} = datasets.CIFAR10("data", train=False, transform={used})
"""


def _program(name: str, first: str, dataset: str = "test_set", used: str = "") -> Run:
    text = _PROGRAM.format(name=name, first=first, dataset=dataset, used=used or name)
    return make_run(sources={"train.py": text})


_LISTED = """
from torchvision import transforms
from data import Scans

def train(files, held_out):
    steps = []
    steps.append(transforms.{first})
    steps.append(transforms.ToTensor())
    chain = transforms.Compose(steps)
    trainSet = Scans(files, transform=chain)
    valSet = Scans(held_out, transform=chain)
"""
_SAME = """
from torchvision import transforms

train_transform = transforms.Compose([transforms.{first}, transforms.ToTensor()])
val_transform = train_transform
"""


def _text(text: str, first: str) -> Run:
    return make_run(sources={"train.py": text.format(first=first)})


_IN_THE_LOOP = """
import torch
import lightning
from torch import nn

class Jitter(nn.Module):
    def forward(self, x):
        return x * (1 + 0.1 * torch.randn(len(x), 1))

class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.jitter, self.fc = Jitter(), nn.Linear(8, 2)

    def on_after_batch_transfer(self, batch, dataloader_idx):
        x, y = batch
        {hook}
        return x, y

    def forward(self, x):
        return self.fc(x)

    def training_step(self, batch, i):
        return nn.functional.cross_entropy(self(batch[0]), batch[1])

    def validation_step(self, batch, i):
        self.log("val", nn.functional.cross_entropy(self(batch[0]), batch[1]))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())

lightning.Trainer().fit(Net(), train_loader, val_loader)
"""
_SHARED = """
import torch

def augment(x):
    return x + 0.1 * torch.randn_like(x)

def run(model, loader, optimizer=None):
    for x, y in loader:
        {call}
        loss = torch.nn.functional.cross_entropy(model(x), y)
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

model = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    run(model, train_loader, optimizer)
    with torch.no_grad():
        run(model, val_loader)
"""


def _hook(text: str) -> Run:
    return make_run(sources={"net.py": _IN_THE_LOOP.format(hook=text)})


def _shared(call: str) -> Run:
    return make_run(sources={"train.py": _SHARED.format(call=call)})


FIRES = {
    "a hook on every batch": _hook("x = self.jitter(x)"),
    "a loop that training shares": _shared("x = augment(x)"),
    "put into a list one by one": _text(_LISTED, "RandomResizedCrop(224)"),
    "the same under another name": _text(_SAME, "RandomHorizontalFlip()"),
    "one composition for both": _program("transform", "RandomHorizontalFlip()"),
    "a composition named for validation": _program("val_transform", "RandomCrop(32, padding=4)"),
}

SILENT = {
    "near miss: a hook that asks for the phase": _hook(
        "if self.trainer.training:\n            x = self.jitter(x)"
    ),
    "near miss: a hook that asks for the mode": _hook(
        "if self.training:\n            x = self.jitter(x)"
    ),
    "near miss: shared, where there is an optimizer": _shared(
        "if optimizer is not None:\n            x = augment(x)"
    ),
    "near miss: a list with nothing random": _text(_LISTED, "CenterCrop(224)"),
    "near miss: one fixed chain under two names": _text(_SAME, "Resize(256)"),
    "nothing random": _program("transform", "Resize(32)"),
    "near miss: random for training only": _program(
        "train_transform", "RandomHorizontalFlip()", used="plain"
    ),
    "near miss: test-time augmentation": _program(
        "tta_test_transform", "RandomHorizontalFlip()", "tta_test_set"
    ),
}
