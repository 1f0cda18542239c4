from traindx.analysis.program.training.claims import finding, program_of, source_text
from traindx.analysis.program.training.metric_inputs import misread_scores
from traindx.examples import template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("metric-bug",))
def check(run: Run) -> Findings:
    """A metric gets predictions for labels, classes for scores, or scores for classes.

    ## What it detects
    Functions of scikit-learn that take the truth first and are given what a model computes first;
    a ROC curve or average precision of predictions that a threshold or `argmax` has decided
    already; logits, by the loss of the same model, that are compared with 0.5; and the largest
    score of each row, `max(1)[0]`, compared with labels.

    ## Why it matters
    The metric has a value, and a wrong one: precision for recall, an area under a curve of a single
    point, a threshold at a probability of 0.62.

    ## What to do
    Give the truth first; rank by scores; compare logits with 0, or take the sigmoid; take the index
    of the largest score.

    ## When it is wrong
    Metrics that are the same both ways, as accuracy is, are left alone. So is what is given where
    it is not in sight that a model made it.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        for found in misread_scores(story):
            if found.event.node not in seen:
                seen.add(found.event.node)
                yield finding(found.says, (found.event, f"`{source_text(found.event)}`"))


_program = template("""
from sklearn.metrics import accuracy_score, precision_score, roc_auc_score

net = nn.Linear(8, 1)
optimizer = torch.optim.Adam(net.parameters())
for x, y in train_loader:
    optimizer.zero_grad()
    nn.functional.binary_cross_entropy_with_logits(net(x).squeeze(1), y.float()).backward()
    optimizer.step()
given, wanted = [], []
with torch.no_grad():
    for x, y in val_loader:
        given += {score}.tolist()
        wanted += y.tolist()
print({metric})
""")

_DECIDED = "(net(x).squeeze(1).sigmoid() > 0.5).int()"
_RANKED = "net(x).squeeze(1).sigmoid()"
FIRES = {
    "predictions first": _program(_DECIDED, "precision_score(given, wanted)"),
    "decided before the ROC curve": _program(_DECIDED, "roc_auc_score(wanted, given)"),
    "logits above one half": _program(
        "(net(x).squeeze(1) > 0.5).int()", "accuracy_score(wanted, given)"
    ),
    "the largest score for its index": _program("(net(x).max(1)[0] == y)", "sum(given)"),
}
SILENT = {
    "near miss: labels first": _program(_DECIDED, "precision_score(wanted, given)"),
    "near miss: logits above zero": _program(
        "(net(x).squeeze(1) > 0).int()", "accuracy_score(wanted, given)"
    ),
    "scores": _program(_RANKED, "roc_auc_score(wanted, given)"),
    "the index of the largest": _program("(net(x).max(1)[1] == y)", "sum(given)"),
}
