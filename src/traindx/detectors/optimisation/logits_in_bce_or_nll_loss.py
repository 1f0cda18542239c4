from traindx.analysis.program.training.claims import finding, program_of
from traindx.analysis.program.training.contents import IN_UNIT_INTERVAL, Content, contents
from traindx.examples import template
from traindx.registry import Findings, Run, detector

RAW = {Content.SCORES, Content.POSITIVE}
WRONG = {
    "binary_cross_entropy": {*RAW, Content.SYMMETRIC, Content.LOG_PROBABILITIES},
    "nll_loss": {*RAW, *IN_UNIT_INTERVAL},
    "kl_div": {Content.SCORES, *IN_UNIT_INTERVAL},
    "ctc_loss": {*RAW, *IN_UNIT_INTERVAL},
    "Categorical": {Content.SCORES, Content.SYMMETRIC, Content.LOG_PROBABILITIES},
    "Bernoulli": {*RAW, Content.SYMMETRIC, Content.LOG_PROBABILITIES},
}
GIVEN = {"ctc_loss": "log_probs", "Categorical": "probs", "Bernoulli": "probs"}
WANTED = {
    "binary_cross_entropy": "probabilities",
    "nll_loss": "log-probabilities",
    "kl_div": "log-probabilities",
    "ctc_loss": "log-probabilities",
    "Categorical": "probabilities",
    "Bernoulli": "probabilities",
}


@detector(needs=("source",), suggests=("loss-expects-probabilities",))
def check(run: Run) -> Findings:
    """Raw outputs are handed to a loss that wants probabilities or their logarithms.

    ## What it detects
    The input of a binary cross-entropy, NLL, CTC or KL-divergence loss, or the probabilities of a
    Categorical or Bernoulli distribution, in whatever form it is written, followed back through the
    program to a layer or activation that does not give (log-)probabilities.

    ## Why it matters
    BCELoss fails or clamps outside [0, 1]; NLLLoss of logits has no minimum: the loss goes below
    zero without end while nothing useful is learnt. KLDivLoss of probabilities is no divergence:
    it is below zero and its gradient does not lead to the target.

    ## What to do
    Use the loss that takes logits (BCEWithLogitsLoss, CrossEntropyLoss): it is also more stable.
    For KLDivLoss take `log_softmax` of the prediction; the target stays a softmax.

    ## When it is wrong
    An activation applied out of sight, as in a library model, is not followed; then nothing is
    said, nor where only one of several branches leaves the activation out.
    """
    seen: set[object] = set()
    for loss in program_of(run).results(*WRONG):
        given = loss.operation.argument(GIVEN.get(loss.operation.name, "input"))
        found = list(contents(given)) if given is not None else []
        wrong = WRONG[loss.operation.name]
        if not found or any(content not in wrong for content, _ in found):
            continue
        content, made = found[0]
        if made.site is None or loss.event.node in seen:
            continue
        seen.add(loss.event.node)
        wanted = WANTED[loss.operation.name]
        yield finding(
            f"{loss.label} expects {wanted} and gets {content.value}",
            (loss.event, f"{loss.label} is computed here"),
            (made, f"its input is the output of this ({content.value})"),
        )


_program = template("""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, x):
        return {returned}

model = Net()
criterion = nn.{criterion}()
for data, target in loader:
    loss = criterion(model(data).squeeze(1), target)
    loss.backward()
""")

_distilled = template("""
def distil(student, teacher, batch, optimizer):
    scores = student(batch)
    goal = F.softmax(teacher(batch), dim=1)
    loss = F.kl_div({scores}, goal, reduction="batchmean")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""")

_autoencoder = template("""
class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Linear(784, 20)
        self.decode = nn.Sequential(nn.Linear(20, 784), nn.Sigmoid())

    def forward(self, x):
        code = self.encode(x)
        return code, self.decode(code)

model = Autoencoder()
for data in loader:
    code, copy = model(data)
    F.binary_cross_entropy({given}, data).backward()
""")

FIRES = {
    "the output that has no sigmoid": _autoencoder("code"),
    "softmax into a KL divergence": _distilled("scores.softmax(1)"),
    "logits into BCELoss": _program("self.body(x)", "BCELoss"),
    "logits into NLLLoss": _program("self.body(x)", "NLLLoss"),
    "probabilities into NLLLoss": _program("F.softmax(self.body(x), dim=1)", "NLLLoss"),
}

SILENT = {
    "near miss: the output that has a sigmoid": _autoencoder("copy"),
    "near miss: log-softmax into a KL divergence": _distilled("F.log_softmax(scores, dim=1)"),
    "near miss: the logarithm of a softmax": _distilled("F.softmax(scores, dim=1).log()"),
    "near miss: sigmoid before BCELoss": _program("torch.sigmoid(self.body(x))", "BCELoss"),
    "log-softmax before NLLLoss": _program("F.log_softmax(self.body(x), dim=1)", "NLLLoss"),
    "logits where they belong": _program("self.body(x)", "BCEWithLogitsLoss"),
}
