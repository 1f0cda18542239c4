from traindx.analysis.program.shapes.structure import is_test_file
from traindx.analysis.program.training.claims import callee_text, finding, program_of, source_text
from traindx.analysis.program.training.facts.misplaced_settings import misplaced_settings
from traindx.analysis.program.training.facts.refused_settings import refused_settings
from traindx.analysis.program.training.facts.refused_values import refused_values
from traindx.analysis.program.training.facts.roles import Misuse, misuses
from traindx.examples import script
from traindx.registry import Finding, Findings, Run, detector


@detector(needs=("source",), suggests=("api-misuse",))
def check(run: Run) -> Findings:
    """Arguments of a call are swapped, exclude each other, or are of a kind that it cannot take.

    ## What it detects
    `update_bn(model, loader)` with its arguments swapped, a scheduler that is made with a model,
    `TensorDataset` or a layer that is given numpy arrays, a loss that is built with its inputs,
    `nn.Sequential` that is given a list, `optimizer.step(loss)` and their kin; the tuple of an LSTM
    taken for a tensor, labels ahead of scores, a plateau without its metric; a `DataLoader` with
    a sampler and `shuffle=True`, a batch sampler and a batch size, or `shuffle=True` over an
    `IterableDataset`; a setting in the place of another: `smooth_l1_loss(x, y, 0.1)` is told no
    beta but the old `size_average`.

    ## Why it matters
    The call fails with a TypeError, ValueError or AttributeError when it is reached, which may be
    after hours; a number in the place of a flag is taken for True, without a word.

    ## What to do
    Pass what the function is documented to take, in its order.

    ## When it is wrong
    Only values whose kind the source shows are judged.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        for misuse in (
            *misuses(story), *refused_settings(story), *refused_values(story),
            *misplaced_settings(story),
        ):  # fmt: skip
            if misuse.event.node not in seen and not is_test_file(misuse.event.module):
                seen.add(misuse.event.node)
                yield _finding(misuse)


def _finding(misuse: Misuse) -> Finding:
    event, given = misuse.event, misuse.given
    written = source_text(given) if given.site is not None else "?"
    return finding(
        f"`{callee_text(event) or source_text(event)}` takes {misuse.takes} and gets {misuse.gets}",
        (event, f"the argument is {written}"),
    )


_TRAIN = """
import numpy as np
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, update_bn
from torch.utils.data import DataLoader, TensorDataset

x = np.random.randn(64, 8).astype(np.float32)
y = np.random.randn(64, 1).astype(np.float32)
model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1))
average = AveragedModel(model)
loader = DataLoader({data}{more})
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR({scheduled}, 10)
for inputs, targets in loader:
    optimizer.zero_grad()
    loss = {loss}
    loss.backward()
    optimizer.step({step})
update_bn({last})
"""


def _train(**changed: str) -> Run:
    given = {
        "data": "TensorDataset(torch.from_numpy(x), torch.from_numpy(y))", "step": "",
        "scheduled": "optimizer", "loss": "nn.MSELoss()(model(inputs), targets)",
        "last": "loader, average", "more": ", batch_size=16",
    }  # fmt: skip
    return script(_TRAIN.format(**{**given, **changed}))


FIRES = {
    "swapped": _train(last="model, loader"),
    "arrays for tensors": _train(data="TensorDataset(x, y)"),
    "a scheduler of a model": _train(scheduled="model"),
    "a loss that is built with its inputs": _train(loss="nn.MSELoss(model(inputs), targets)"),
    "a step of a loss": _train(step="loss"),
    "labels first": _train(loss="nn.CrossEntropyLoss()(torch.zeros(8).long(), model(inputs))"),
    "the tuple of an LSTM": _train(loss="nn.Linear(8, 1)(nn.LSTM(8, 8)(model(inputs))).sum()"),
    "backward of many values": _train(loss="model(torch.zeros(4, 8)) ** 2"),
    "an array of what needs gradients": _train(loss="model(inputs).sum(); np.log(loss.numpy())"),
    "a plateau without a metric": _train(
        last="loader, average); torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer).step("
    ),
    "a sampler and shuffle": _train(more=", 16, True, torch.utils.data.RandomSampler(x)"),
    "a sampler and shuffle, merged": _train(
        more=", **{**{'shuffle': True}, 'sampler': torch.utils.data.RandomSampler(x)}"
    ),
    "a beta in another's place": _train(
        loss="nn.functional.smooth_l1_loss(model(inputs), targets, 0.02)"
    ),
    "a reduction in another's place": _train(loss="nn.MSELoss('sum')(model(inputs), targets)"),
    "a weight decay as dampening": _train(
        last="loader, average); torch.optim.SGD([x], 0.1, 0.9, 5e-4"
    ),
    "a batch sampler and a batch size": _train(
        more=", 16, batch_sampler=torch.utils.data.BatchSampler(range(64), 8, False)"
    ),
}

SILENT = {
    "as documented": _train(),
    "near miss: a sampler where nothing shuffles": _train(
        more=", 16, shuffle=False, sampler=torch.utils.data.RandomSampler(x)"
    ),
    "near miss: shuffled where there is no sampler": _train(more=", 16, True, sampler=None"),
    "near miss: one or the other": _train(
        more=", 16, sampler=s, shuffle=s is None", data="TensorDataset(a, b)"
    ),
    "near miss: a schedule of schedules": script("""
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
first = torch.optim.lr_scheduler.StepLR(optimizer, 10)
both = torch.optim.lr_scheduler.ChainedScheduler([first])
"""),
    "near miss: the output of an LSTM": _train(
        loss="nn.Linear(8, 1)(nn.LSTM(8, 8)(model(inputs))[0]).sum()"
    ),
    "near miss: an array of what is detached": _train(
        loss="model(inputs).sum(); np.log(loss.detach().numpy())"
    ),
    "near miss: a beta by its name": _train(
        loss="nn.functional.smooth_l1_loss(model(inputs), targets, beta=0.02)"
    ),
    "near miss: settings in their places": _train(
        loss="nn.LeakyReLU(0.1, True)(nn.Linear(8, 1, 1)(inputs)).sum()"
    ),
    "near miss: by keyword": _train(last="model=average, loader=loader"),
    "near miss: a batch of inputs": _train(last="[i for i, _ in loader], average"),
    "near miss: weights of a loss": _train(
        loss="nn.BCEWithLogitsLoss(torch.ones(1))(model(inputs), targets)"
    ),
}
