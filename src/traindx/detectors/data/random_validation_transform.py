from collections.abc import Iterator

from traindx.analysis.program.training.augmentation import (
    AugmentedEvaluation,
    augmented_evaluations,
)
from traindx.analysis.program.training.claims import Story, cite, each_place, finding
from traindx.analysis.program.training.random_data import random_held_out_data
from traindx.analysis.program.training.random_layers import RandomLayer, random_layers
from traindx.examples import script, template
from traindx.registry import Finding, Findings, Run, detector

CAUSE = "augmentation-in-validation"


@detector(needs=("source",), suggests=("augmentation-in-validation",))
def check(run: Run) -> Findings:
    """Validation or test data pass through random transforms.

    ## What it detects
    A loader or dataset that is used for validation or testing whose examples are changed by random
    numbers: by a random transform of a library, or by the dataset's or the collate function's own
    code (noise, random flips, shifts, holes). Also a composition of transforms that is named for
    validation or testing and holds a random one; and a layer of the model that changes its input at
    random whatever its mode, so that evaluation is random too.

    ## Why it matters
    The metric changes from run to run and is lower than the model deserves; the best checkpoint is
    chosen by luck.

    ## What to do
    Give validation its own transforms: resize, centre crop, normalise, nothing random. In a layer,
    return the input as it is unless `self.training`.

    ## When it is wrong
    Test-time augmentation is random on purpose; names that say so are left alone. So are random
    draws that only choose which part of the data is shown, and draws that are the task: masked
    tokens, two views, noise to be taken away.
    """
    yield from each_place(run, _findings, lambda finding: finding.location)


def _findings(story: Story) -> Iterator[Finding]:
    for found in random_held_out_data(story):
        evidence = [cite(found.change, f"{found.name} is random")]
        if found.used is not None:
            evidence.append(cite(found.used, "held-out data pass through it"))
        claim = f"Held-out data are augmented at random: {found.says} {found.name}"
        yield finding(claim, *evidence, at=found.place)
    yield from map(_augmented, augmented_evaluations(story))
    yield from map(_in_layer, random_layers(story))


def _augmented(found: AugmentedEvaluation) -> Finding:
    return finding(
        f"Validation batches pass through `{found.name}`, which is random",
        (found.call, "called for validation batches, too"),
        (found.evaluation.forward, "evaluated here"),
    )


def _in_layer(found: RandomLayer) -> Finding:
    return finding(
        f"`{found.name}` changes its input at random in evaluation mode, too",
        (found.draw, "random numbers are drawn whatever the mode is"),
        (found.evaluation.forward, "and validation passes through it"),
        patch=found.patch(),
    )


_program = template("""
from torchvision import datasets, transforms

{name:transform} = transforms.Compose([
    transforms.{first:RandomHorizontalFlip()},
    transforms.ToTensor(),
])
train_set = datasets.CIFAR10("data", train=True, transform={name})
{dataset:test_set} = datasets.CIFAR10("data", train=False, transform={used:transform})
""")
_listed = template("""
from torchvision import transforms
from data import Scans

def train(files, held_out):
    steps = []
    steps.append(transforms.{first})
    steps.append(transforms.ToTensor())
    chain = transforms.Compose(steps)
    trainSet = Scans(files, transform=chain)
    valSet = Scans(held_out, transform=chain)
""")
_same = template("""
from torchvision import transforms

train_transform = transforms.Compose([transforms.{first}, transforms.ToTensor()])
val_transform = train_transform
""")
_hook = template("""
import lightning

class Jitter(nn.Module):
    def forward(self, x):
        return x * (1 + 0.1 * torch.randn(len(x), 1))

class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.jitter, self.fc = Jitter(), nn.Linear(8, 2)

    def on_after_batch_transfer(self, batch, dataloader_idx):
        x, y = batch
        {hook:x = self.jitter(x)}
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
""")
_shared = template("""
def augment(x):
    return x + 0.1 * torch.randn_like(x)

def run(model, loader, optimizer=None):
    for x, y in loader:
        {call:x = augment(x)}
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
""")
_layer = template("""
class Shift(nn.Module):
    def forward(self, x):
        {first:pass}
        return x.roll(int(torch.randint(-2, 3, ())), -1)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.shift, self.fc = Shift(), nn.Linear(16, 3)
    def forward(self, x):
        {given:x = self.shift(x)}
        return self.fc(x)

model = Net()
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(9):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        for x, y in val_loader:
            print((model(x).argmax(1) == y).float().mean())
""")

FIRES = {
    "a layer that shifts whatever the mode": _layer(),
    "noise in the forward pass": _layer(given="x = x + 0.1 * torch.randn_like(x)"),
    "a hook on every batch": _hook(),
    "a loop that training shares": _shared(),
    "put into a list one by one": _listed("RandomResizedCrop(224)"),
    "the same under another name": _same("RandomHorizontalFlip()"),
    "one composition for both": _program(),
    "a composition named for validation": _program(
        "val_transform", "RandomCrop(32, padding=4)", used="val_transform"
    ),
}

SILENT = {
    "near miss: a layer that asks for its mode": _layer("if not self.training: return x"),
    "near miss: noise behind weights": _layer(given="x = self.fc(x) + torch.randn(3); return x"),
    "near miss: put into the list for training": script("""
import argparse
from torchvision import transforms
from torchvision.datasets import ImageFolder

def get_loader(mode):
    steps = []
    if mode == "train":
        steps.append(transforms.RandomHorizontalFlip())
    steps.append(transforms.ToTensor())
    return DataLoader(ImageFolder("images", transforms.Compose(steps)), shuffle=mode == "train")

parser = argparse.ArgumentParser()
parser.add_argument("--mode", default="train", choices=["train", "test"])
args = parser.parse_args()
test_loader = get_loader(args.mode)
model = nn.Linear(4, 2)
if args.mode == "test":
    model.eval()
    with torch.no_grad():
        for x, y in test_loader:
            print((model(x).argmax(1) == y).sum())
"""),
    "near miss: a hook that asks for the phase": _hook(
        "if self.trainer.training: x = self.jitter(x)"
    ),
    "near miss: a hook that asks for the mode": _hook("if self.training: x = self.jitter(x)"),
    "near miss: shared, where there is an optimizer": _shared(
        "if optimizer is not None: x = augment(x)"
    ),
    "near miss: a list with nothing random": _listed("CenterCrop(224)"),
    "near miss: one fixed chain under two names": _same("Resize(256)"),
    "nothing random": _program(first="Resize(32)"),
    "near miss: random for training only": _program("train_transform", used="plain"),
    "near miss: test-time augmentation": _program(
        "tta_test_transform", used="tta_test_transform", dataset="tta_test_set"
    ),
}
