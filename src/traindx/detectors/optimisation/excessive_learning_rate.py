from traindx.analysis.program.training.claims import each_place, finding, node_of
from traindx.analysis.program.training.excessive_rates import excessive_rates
from traindx.examples import script, template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("lr-too-high",))
def check(run: Run) -> Findings:
    """An optimizer is given a learning rate at which no network keeps what it has learnt.

    ## What it detects
    0.3 or more for Adam and its kin over a network of two or more layers, 0.1 where there are four
    or attention; 3e-3 or more over a whole
    pretrained transformer; 10 or more for plain descent, divided by one minus the momentum, over a
    network without normalisation whose gradients are not clipped.

    ## Why it matters
    Adam moves every weight by about the rate in every step, whatever the gradient: at 0.3 the
    initial weights are gone at once. Plain descent overshoots every minimum, and the loss explodes.

    ## What to do
    Start from 1e-3 for Adam, 2e-5 for fine-tuning transformers, 0.1 for SGD.

    ## When it is wrong
    A schedule, a warm-up or the program itself may lower the rate before the first step; such
    programs are left alone, and so are those that train images, points or single layers.
    """
    for group, rate in each_place(run, excessive_rates, at=lambda g: node_of(g[0].optimizer)):
        yield finding(
            f"{group.kind} has a learning rate of {rate:g}, far too high to train",
            (group.optimizer, f"lr={rate:g}"),
        )


_LOOP = """
net = {net}
optimizer = torch.optim.{optimizer}
{before}
for x, y in train_loader:
    optimizer.zero_grad()
    nn.functional.mse_loss(net(x), y).backward()
    optimizer.step()
"""
_NET = "nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 1))"

_loop = template(_LOOP, "optimizer", net=_NET, before="")

_ATTENTION = "nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2), 2)"
_TUNING = """
from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments

model = AutoModelForSequenceClassification.from_pretrained("bert-base-uncased")
args = TrainingArguments("out", learning_rate={rate})
Trainer(model=model, args=args, train_dataset=data).train()
"""

FIRES = {
    "Adam": _loop("Adam(net.parameters(), lr=1.0)"),
    "Adam, attention": _loop("AdamW(net.parameters(), lr=1e-3 * 128)", _ATTENTION),
    "plain descent": _loop("SGD(net.parameters(), lr=5, momentum=0.9)"),
    "a pretrained transformer": script(_TUNING, rate=0.05),
}
SILENT = {
    "usual": _loop("Adam(net.parameters(), lr=1e-3)"),
    "near miss: attention, a high rate": _loop("AdamW(net.parameters(), lr=0.02)", _ATTENTION),
    "near miss: a single layer": _loop("Adam(net.parameters(), lr=1.0)", "nn.Linear(4, 1)"),
    "near miss: a schedule begins lower": _loop(
        "Adam(net.parameters(), lr=1.0)",
        before="s = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: 1e-3 / (1 + i))",
    ),
    "near miss: normalised": _loop(
        "SGD(net.parameters(), lr=20)",
        "nn.Sequential(nn.Linear(4, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 1))",
    ),
    "near miss: tuned as usual": script(_TUNING, rate=5e-5),
}
