from traindx.analysis.program.training.claims import each_place, finding
from traindx.analysis.program.training.graphs import last_batch_learnt
from traindx.examples import script, template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("missing-backward",))
def check(run: Run) -> Findings:
    """The model runs on every batch, and only the last batch of an epoch is trained on.

    ## What it detects
    A loop over a data loader, within a loop over epochs, that runs the model with gradients, while
    `backward` is called behind that loop on a loss that was computed from the output of the last
    batch and of no other.

    ## Why it matters
    It is an indentation gone astray: one step per epoch, from one batch. The loss falls as slowly
    as if the data had a single batch.

    ## What to do
    Move the loss, `backward` and the step into the loop over batches.

    ## When it is wrong
    Outputs or losses that are collected, summed up or carried on over the batches are learnt from
    together; these, and loops over time steps, are left alone.
    """
    for forward, backward in each_place(run, last_batch_learnt, lambda found: found[1].event.node):
        yield finding(
            "Backward runs after the loop over batches: only the last batch is trained on",
            (forward, "the model runs on every batch here"),
            (backward, "and backward only after the last one"),
            at=backward,
        )


_EPOCHS = """
model = Net()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters())
for epoch in range(9):
    model.train()
    for {batch}:
        x = x.cuda()
        output = model(x)
        {inside}
    loss = criterion({behind}, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
_epochs = template(_EPOCHS, inside="pass", behind="output", batch="x, y in train_loader")

FIRES = {
    "the loss of the last batch, in a method": script("""
class T:
    def run(self, model, train_loader, opt, crit):
        for epoch in range(3):
            for x, y in train_loader:
                loss = crit(model(x), y)
            loss.backward()
            opt.step()
            opt.zero_grad()
"""),
    "only the last output": _epochs(),
}

SILENT = {
    "near miss: a loss over an episode": script("""
policy = nn.Linear(4, 2)
opt = torch.optim.Adam(policy.parameters(), lr=1e-3)
for episode in range(100):
    logs, rewards = [], []
    s = env.reset()
    for t in range(200):
        d = torch.distributions.Categorical(logits=policy(s))
        a = d.sample()
        logs.append(d.log_prob(a))
        s, r, done, _ = env.step(a.item())
        rewards.append(r)
        if done:
            break
    loss = -(torch.stack(logs) * torch.tensor(rewards)).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""),
    "near miss: outputs are collected": _epochs("outputs.append(output)", "torch.cat(outputs)"),
    "near miss: a sum over the batches": _epochs(
        "total = total + criterion(output, y)", "total + output"
    ),
    "near miss: a state that is carried on": _epochs("state = mix(output, state)", "state"),
    "near miss: outputs are kept by their place": _epochs("kept[i] = output", "kept"),
    "near miss: one batch is enough": _epochs("break"),
    "near miss: time steps": _epochs(batch="x in sequence.unbind(1)"),
    "near miss: another loss behind the batches": _epochs(
        "criterion(output, y).backward()", "model(probe)"
    ),
}
