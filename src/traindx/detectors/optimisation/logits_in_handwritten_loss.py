from traindx.analysis.steps.probabilities import complements_of_scores
from traindx.analysis.steps.step_graph import steps_of
from traindx.examples import captured, step_of
from traindx.registry import Findings, Run, detector, finding

CAUSE = "loss-expects-probabilities"


@detector(needs=("step",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """A loss written by hand takes logits for probabilities.

    ## What it detects
    In the operations of a captured step: an output p of the model with values below 0 or above 1,
    where the loss weighs both p and 1 - p with labels of 0 and 1 (Dice, Tversky, focal loss).

    ## Why it matters
    For such values 1 - p is no probability: terms cancel or change their sign, and the loss falls
    by growing the outputs.

    ## What to do
    Put `torch.sigmoid` on the output first.

    ## When it is wrong
    A hinge loss has 1 - y * p, with the label inside; that is left alone.
    """
    for step in steps_of(run, training=True):
        for act in complements_of_scores(step):
            facts = act.inputs[0].facts
            says = f"1 - p, where p is from {facts.low:.3g} to {facts.high:.3g}"
            claim = (
                f"The loss takes outputs from {facts.low:.3g} to {facts.high:.3g} as probabilities"
            )
            yield finding(claim, CAUSE, step.cite(act, says), place=act.place)
            return


_STEP = """
x: batch/0 (32, 8)
y: batch/1 (32, 1)
w: parameter:fc.weight (1, 8)
o (32, 1) = mm(x, w) in fc
p (32, 1) = {link}(o)
{lines}
loss () = sum(d)
"""
_BINARY = {"low": 0.0, "high": 1.0, "is_whole": True}
_ONE = {"settings": {"other": 1}}
_TVERSKY = """
t (32, 1) = mul(p, y)
q (32, 1) = rsub(p)
f (32, 1) = mul(q, y)
d (32, 1) = add(t, f)
"""
_FOCAL = """
t (32, 1) = mul(p, y)
q (32, 1) = rsub(p)
n (32, 1) = rsub(y)
f (32, 1) = mul(q, n)
d (32, 1) = add(t, f)
"""


def _run(lines: str, link: str = "view", low: float = -2.0, high: float = 3.0) -> Run:
    own = {"low": low, "high": high}
    text = _STEP.format(lines=lines, link=link)
    no = {**_BINARY, **_ONE}
    return captured(step_of(text, y=_BINARY, n=no, q=_ONE, p=own, o=own, t=own))


FIRES = {"Tversky": _run(_TVERSKY), "both sides": _run(_FOCAL)}

SILENT = {
    "probabilities": _run(_TVERSKY, "sigmoid", 0.1, 0.9),
    "near miss: a hinge": _run("""
t (32, 1) = mul(p, y)
q (32, 1) = rsub(t)
d (32, 1) = mul(q, y)
"""),
    "near miss: outputs that are cut off at the edges": _run(_FOCAL, "clamp", 0.0, 1.0),
}
