from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.training.claims import finding, program_of, source_text
from traindx.analysis.program.training.device_waits import FORCED, step_waits
from traindx.examples import script, template
from traindx.registry import Finding, Findings, Run, Strength, detector

SOME = 3  # one read per step for the running loss is what everybody does
MANY = 6  # a GAN that logs both of its losses and three scores reads five


@detector(needs=("source",), suggests=("synchronisation-in-loop",))
def check(run: Run) -> Findings:
    """Every training step waits for the device, several times or by force.

    ## What it detects
    In every turn of the loop over batches: `torch.cuda.empty_cache()` or `synchronize()`, a value
    read back with `.item()`, `.cpu()` or `float()` for each parameter or sample, a number that the
    forward pass reads back of what was only just moved to the device (the longest length of a
    batch), or three and more values read back, as by a condition on a tensor, in code for CUDA; in
    the loop or in what it calls.

    ## Why it matters
    The host may run ahead of the device and hide its own work. Every read waits until the device
    has caught up; emptying the cache also makes every allocation slow again.

    ## What to do
    Read back every n steps, keep running sums on the device, and leave the cache alone.

    ## When it is wrong
    Large models hide it: with steps of a second a few waits cost nothing. Hence a weak remark for a
    few reads.
    """
    for story in program_of(run).stories:
        for waits in step_waits(story):
            if waits.forced:
                first = waits.forced[0]
                yield _finding(first, f"Every training step {FORCED[first.name]}")
            elif waits.repeated:
                what = "a value back from the device for each parameter or sample"
                yield _finding(waits.repeated[0], f"Every training step reads {what}")
            elif waits.returned:
                what = "what was moved to the device and is read back in the forward pass"
                yield _finding(waits.returned[0], f"Every training step waits for {what}")
            elif len(waits.reads) >= SOME:
                what = f"{len(waits.reads)} values back from the device"
                is_hint = len(waits.reads) < MANY
                yield _finding(waits.reads[0], f"Every training step reads {what}", is_hint=is_hint)


def _finding(event: ProgramEvent, claim: str, *, is_hint: bool = False) -> Finding:
    return finding(
        claim,
        (event, f"`{source_text(event)}` runs in every step"),
        strength=Strength.WEAK if is_hint else Strength.MODERATE,
        hint=Strength.WEAK if is_hint else None,
        is_symptom=False,
    )


_loop = template("""
model.cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i, (data, target) in enumerate(loader):
    optimizer.zero_grad()
    loss = criterion(model(data), target)
    loss.backward()
    optimizer.step()
    {more}
""")

_THREE = "a = loss.item(); b = norm.item(); c = accuracy.item()"

_NORMS = "norms = {n: p.grad.norm().item() for n, p in model.named_parameters()}"

_lengths = template("""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(100, 8), nn.Linear(8, 2)

    def forward(self, ids, lengths):
        longest = {longest:int(lengths.max())}
        return self.head(self.embedding(ids[:, :longest]).mean(1))

net = Net().cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for ids, lengths, y in loader:
    {before:pass}
    loss = nn.functional.cross_entropy(net(ids.cuda(), {given:lengths.cuda()}), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""")

FIRES = {
    "a length that is moved and read back": _lengths(),
    "a length that was moved before": _lengths(
        "lengths.max().item()", "lengths = lengths.to('cuda')", "lengths"
    ),
    "a branch on every weight": _loop(
        "for p in model.parameters():\n        if p.abs().max() > 1e4: raise ValueError"
    ),
    "by force where there is a GPU": _loop(
        'if device.type == "cuda":\n        torch.cuda.synchronize(device)'
    ),
    "the cache is emptied": _loop("torch.cuda.empty_cache()"),
    "three reads": _loop(_THREE),
    "a read for each parameter": _loop(_NORMS),
    "a number of each parameter": _loop(
        "norms = [float(p.grad.norm()) for p in model.parameters()]"
    ),
}

SILENT = {
    "near miss: a length that stays on the host": _lengths(given="lengths"),
    "near miss: lengths that a layer needs on the CPU": _lengths("lengths.cpu()"),
    "near miss: the size of each parameter": _loop(
        "n = [int(p.numel()) for p in model.parameters()]"
    ),
    "near miss: one read": _loop("total += loss.item()"),
    "near miss: every hundred steps": _loop(f"if i % 100 == 0:\n        {_THREE}"),
    "near miss: each parameter, every hundred steps": _loop(f"if i % 100 == 0:\n        {_NORMS}"),
    "near miss: the actions of an episode": script("""
import torch
from torch.distributions import Categorical

policy = torch.nn.Linear(4, 2).cuda()
optimizer = torch.optim.Adam(policy.parameters())
for episode in range(1000):
    state, logs, done = env.reset(), [], False
    while not done:
        choice = Categorical(logits=policy(state))
        action = choice.sample()
        state, reward, done = env.step(action.item())
        logs.append(choice.log_prob(action) * reward)
    optimizer.zero_grad()
    (-torch.stack(logs).sum()).backward()
    optimizer.step()
"""),
}
