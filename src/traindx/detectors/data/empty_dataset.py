from traindx.analysis.errors.failing_lines import is_held_out, is_of_no_batch, names_training
from traindx.analysis.errors.loader_messages import EMPTY_DATASET
from traindx.analysis.errors.messages import finding, known_error
from traindx.examples import Frame, failed
from traindx.registry import Findings, Run, Strength, detector


@detector(needs=("failure",), suggests=("api-misuse", "empty-validation"))
def check(run: Run) -> Findings:
    """A data loader is made over a dataset without examples.

    ## What it detects
    "num_samples should be a positive integer value, but got num_samples=0", and a division by zero
    on a line that averages over a loader's length or a count of examples. Where training steps were
    taken before, the division is of held-out data. So is "torch.cat(): expected a non-empty list
    of Tensors" in what is called with such data. An average over `i + 1` batches whose `i` was
    never set says that the loop had none.

    ## Why it matters
    A wrong folder, a filter that drops everything, or a split that rounds down to nothing; without
    shuffling the same fault passes in silence and the epoch has no steps.

    ## What to do
    Assert `len(dataset) > 0` where the dataset is made, and look at the path and the split.

    ## When it is wrong
    A rank that gets no shard of a small dataset sees the same while the others do not.
    """
    known = known_error(run, EMPTY_DATASET)
    if known is None or not is_of_no_batch(known):
        return
    is_averaging = known.kind == "division" and run.has("loss") and not names_training(known)
    if is_held_out(known.failure) or is_averaging:
        what, cause = "The held-out dataset", "empty-validation"
    else:
        what, cause = "The dataset", "api-misuse"
    yield finding(known, known.claim(what=what), suggests={cause: Strength.STRONG})


_ERROR = "ValueError: num_samples should be a positive integer value, but got num_samples=0"


FIRES = {
    "a loop that never ran": failed(
        "UnboundLocalError: local variable 'i' referenced before assignment",
        "epoch_loss = epoch_loss / (i + 1)",
    ),
    "nothing to join": failed(
        "RuntimeError: torch.cat(): expected a non-empty list of Tensors",
        "val_predictions = torch.cat(outputs)",
    ),
    "divided in place": failed(
        "ZeroDivisionError: division by zero", "test_loss /= len(test_loader.dataset)"
    ),
    "a caller hands over the held-out data": failed(
        "ZeroDivisionError: division by zero",
        "top1 = match_views(encoder, val_loader)",
        frames=(Frame("train.py", 57, "match_views", "return hits / count"),),
    ),
    "training data": failed(_ERROR, "loader = DataLoader(train_set, shuffle=True)"),
    "validation data": failed(_ERROR, "val_loader = DataLoader(val_set, shuffle=True)"),
    "an average over nothing": failed(
        "ZeroDivisionError: division by zero", "return total_loss / len(val_loader)"
    ),
}

SILENT = {
    "near miss: a name that only a branch sets": failed(
        "UnboundLocalError: local variable 'loss' referenced before assignment", "loss.backward()"
    ),
    "near miss: some other list": failed(
        "RuntimeError: torch.cat(): expected a non-empty list of Tensors", "x = torch.cat(parts)"
    ),
    "near miss: another division": failed(
        "ZeroDivisionError: division by zero", "scale = 1 / (a - b)"
    ),
    "another error": failed("KeyError: 'label'"),
}
