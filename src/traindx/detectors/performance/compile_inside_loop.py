from traindx.analysis.program.training.claims import each_place, finding
from traindx.analysis.program.training.compilation import compiled_again
from traindx.examples import template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("recompilation",))
def check(run: Run) -> Findings:
    """`torch.compile` is called inside a training loop.

    ## What it detects
    A call of `torch.compile` in every turn of a loop that trains, there or in a function that it
    calls, on a model that is the same one in each iteration.

    ## Why it matters
    Each call wraps the model anew, so its guards and caches start empty or pile up: time goes into
    the compiler instead of training.

    ## What to do
    Compile once, before the loop.

    ## When it is wrong
    A loop over models, folds or settings that makes and trains one each time compiles rightly; a
    loop that also makes its model or its optimizer is left alone.
    """
    for again, loop in each_place(run, compiled_again, lambda found: found[0].node):
        yield finding(
            "The model is compiled inside the training loop",
            (again, "compiled here, in every iteration"),
            (loop.run.site, "the loop"),
        )


_program = template("""
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{before:}
for epoch in range(3):
    {inside:pass}
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
""")
_COMPILE = "model = torch.compile(model)"

_MADE = "model = make_model(epoch)\n    "

FIRES = {
    "every epoch": _program(inside=_COMPILE),
    "every epoch, after a move": _program(inside=f"model = model.cuda()\n    {_COMPILE}"),
}

SILENT = {
    "once": _program(_COMPILE),
    "near miss: a new model for each fold": _program(inside=_MADE + _COMPILE),
    "near miss: made where it is compiled": _program(inside="model = torch.compile(Net())"),
    "near miss: in the first epoch": _program(inside=f"if epoch == 0:\n        {_COMPILE}"),
}
