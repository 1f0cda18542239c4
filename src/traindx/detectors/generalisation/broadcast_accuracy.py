from traindx.analysis.program.training.claims import cite, each_place, finding, site_of, source_text
from traindx.analysis.program.training.pairing import crossed_metrics
from traindx.examples import script, template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("metric-bug",))
def check(run: Run) -> Findings:
    """Accuracy compares a column of predictions with a row of labels.

    ## What it detects
    A loss over an output and labels that were given another dimension (`unsqueeze(1)`,
    `view(-1, 1)`, `[:, None]`), and a comparison of the predictions of the same output with the
    same labels as they are. And any difference or comparison of a column of outputs with a row of
    targets of the same batch that no backward pass depends on, where both shapes are in sight.

    ## Why it matters
    Shapes (B, 1) and (B,) broadcast to a matrix of B times B: every prediction is compared with
    every label, and the accuracy says how common the classes are.

    ## What to do
    Compare with the labels that the loss gets, or drop the dimension of the output: `squeeze(1)`.

    ## When it is wrong
    Outputs that are reshaped before the comparison are left alone.
    """
    for pair, loss in each_place(run, crossed_metrics, lambda found: site_of(found[0]).node):
        size = "N" if loss is None else "B"
        shape = "targets of shape (N)" if loss is None else "labels of shape (B,)"
        subject = "A metric" if loss is None else "Accuracy"
        yield finding(
            f"{subject} compares predictions of shape ({size}, 1) with {shape}",
            (pair, f"`{source_text(pair)}` broadcasts to {size} times {size}"),
            *([cite(loss, "the loss gets the labels with another dimension")] if loss else []),
        )


_LOOP = """
net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
for x, y in val_loader:
    out = net(x)
    loss = nn.functional.binary_cross_entropy_with_logits(out, {target})
    hits = {hits}
    print(loss, hits.float().mean())
"""
_loop = template(_LOOP, hits="", target="y.float().unsqueeze(1)")
_scores = template("""
X, y = torch.randn(500, 6), torch.randn(500)
train, test = random_split(TensorDataset(X, y), [400, 100])
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))

@torch.no_grad()
def score():
    given, wanted = [], []
    for xb, yb in DataLoader(test, 50):
        given.append(net(xb){squeeze:})
        wanted.append(yb)
    given, wanted = torch.cat(given), torch.cat(wanted)
    return (given - wanted).abs().mean()

print(score())
""")

FIRES = {
    "an error over the whole test set": _scores(),
    "a threshold": _loop("(out > 0).long() == y"),
    "a column by its index": _loop("y.eq(out.sigmoid().round())", "y[:, None].float()"),
    "rounded, as functions": script("""
class Judge(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.loss = nn.Linear(8, 1), nn.BCEWithLogitsLoss()

    def score(self, batch):
        x, label = batch
        logit = self.body(x)
        loss = self.loss(logit, label.view(-1, 1).float())
        guess = torch.round(torch.sigmoid(logit))
        return loss, torch.eq(guess, label).float().mean()
"""),
}

SILENT = {
    "near miss: an error over the whole test set, squeezed": _scores(".squeeze(1)"),
    "the same labels": _loop("(out > 0).long() == y.unsqueeze(1)"),
    "near miss: the dimension is dropped": _loop("(out.squeeze(1) > 0).long() == y"),
    "near miss: flattened": _loop("(out > 0).flatten() == y"),
    "near miss: labels that are columns already": _loop("(out > 0).long() == y", "y.float()"),
}
