from traindx.analysis.program.training.claims import each_place, finding, site_of, source_text
from traindx.analysis.program.training.normalisation import other_normalisations
from traindx.examples import template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("preprocessing-mismatch",))
def check(run: Run) -> Findings:
    """The transforms of training and validation normalise with other numbers, or one not at all.

    ## What it detects
    Two compositions of torchvision transforms, one that training data pass through and one that
    held-out data do (by the loaders that read them, else by their names), whose `Normalize` differs
    in its numbers or is there in training only.

    ## Why it matters
    The model sees shifted inputs in validation: a gap that no regularisation closes.

    ## What to do
    Use one `normalize = transforms.Normalize(mean, std)` in both.

    ## When it is wrong
    Numbers that are computed, and compositions that are joined from parts, are not compared, and
    neither are the transforms of different datasets or inputs, which their names tell apart.
    """
    for found in each_place(run, other_normalisations, lambda found: site_of(found.held).node):
        second = found.second
        how = "does not normalise" if second is None else f"uses {source_text(second)}"
        names = [v.called("the transform") for v in (found.train, found.held)]
        yield finding(
            f"`{names[0]}` and `{names[1]}` normalise differently: the second {how}",
            (found.first, f"training: {source_text(found.first)}"),
            (second or found.held, f"held-out data: {how}"),
            at=second or found.held,
        )


_PROGRAM = """
from torchvision import transforms

train_transform = transforms.Compose([
    transforms.RandomHorizontalFlip(),
    transforms.ToTensor(),
    transforms.Normalize((0.5,), (0.5,)),
])
{name} = transforms.Compose([transforms.ToTensor(){val}])
"""
_program = template(_PROGRAM, "val", name="val_transform")
_renamed = template(_PROGRAM, "name", val=", transforms.Normalize((0.25,), (0.38,))")

FIRES = {
    "under another word": _renamed("test_tfm"),
    "other numbers": _program(", transforms.Normalize((0.1307,), (0.3081,))"),
    "not at all": _program(""),
}

SILENT = {
    "near miss: the same for all channels": _program(
        ", transforms.Normalize(std=[0.5, 0.5, 0.5], mean=[0.5, 0.5, 0.5])"
    ),
    "near miss: rounded otherwise": _program(", transforms.Normalize((0.4999,), (0.5001,))"),
    "near miss: of another dataset": _renamed("usps_test_transform"),
    "near miss: in another branch": _renamed("if is_usps:\n    val_transform"),
    "the same": _program(", transforms.Normalize((0.5,), (0.5,))"),
    "near miss: the same as lists": _program(", transforms.Normalize([0.5], [0.5])"),
    "near miss: computed": _program(", transforms.Normalize(mean, std)"),
}
