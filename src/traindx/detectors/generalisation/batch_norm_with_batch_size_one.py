from traindx.analysis.program.training.claims import each_place, finding, source_text
from traindx.analysis.program.training.single_examples import norms_of_single_examples
from traindx.examples import script, template
from traindx.registry import Findings, Run, Strength, detector


@detector(needs=("source",), suggests=("batchnorm-small-batch",))
def check(run: Run) -> Findings:
    """A model with batch norm is trained from a loader with a batch size of one.

    ## What it detects
    A training pass in a loop over a loader that is made with `batch_size=1` (or without a size,
    which means one), or over the single examples that a batch is cut into (`batch.split(1)`), and a
    model made in sight that holds batch norm.

    ## Why it matters
    The statistics of one sample say nothing about the data, so validation with running statistics
    falls far behind training; on flat features training raises at once.

    ## What to do
    A larger batch, or group norm or layer norm, which do not look at the batch.

    ## When it is wrong
    Large images or volumes give usable statistics from one sample; hence only a remark, unless a
    larger batch is cut up.
    """
    for found in each_place(run, norms_of_single_examples, lambda found: found.loader):
        model = found.event.receiver
        name = (model.called() if model is not None else "") or source_text(found.event)
        yield finding(
            f"`{name}` holds {found.norm} and is trained on batches of one",
            (found.loader, "one example at a time"),
            (found.event, f"{found.norm} runs on it here"),
            strength=Strength.MODERATE,
            hint=None if found.is_cut else Strength.MODERATE,
            is_symptom=False,
        )


_program = template("""
model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.{norm:BatchNorm2d(8)})
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
train_loader = DataLoader(data, batch_size={size}, shuffle=True)
for x, y in train_loader:
    optimizer.zero_grad()
    for a, b in {pieces:[(x, y)]}:
        nn.functional.mse_loss(model(a.to(device)), b).backward()
    optimizer.step()
""")

FIRES = {
    "a batch that is cut into ones": _program(16, pieces="zip(x.split(1), y.split(1))"),
    "batches of one": _program("1"),
    "no size, in a class": script("""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))

    def forward(self, x):
        return self.body(x)

class Fitter:
    def __init__(self, data):
        self.net = Net()
        self.opt = torch.optim.Adam(self.net.parameters())
        self.batches = DataLoader(data, shuffle=True)

    def fit(self):
        for step, (x, y) in enumerate(self.batches):
            loss = nn.functional.cross_entropy(self.net(x), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()

Fitter(data).fit()
"""),
}

SILENT = {
    "near miss: a batch that is cut in halves": _program(16, pieces="zip(x.split(8), y.split(8))"),
    "batches of 32": _program("32"),
    "near miss: group norm": _program("1", "GroupNorm(2, 8)"),
    "near miss: decided at run time": _program("args.batch_size"),
}
