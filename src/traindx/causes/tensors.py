"""Causes in single tensors: where they are, what they hold, how they are called."""

from __future__ import annotations

from traindx.causes import facts
from traindx.causes.cause import DATA, DEBUGGING, MEMORY, Ask, Cause
from traindx.model.findings import Remedy, Severity

CAUSES = (
    Cause(
        name="device-mismatch",
        title="Tensors that meet in one operation are on different devices{devices_fact}",
        what=(
            "One operand was left on the CPU or on another GPU: a batch that was not moved, a "
            "tensor made inside `forward` without `device=`, a plain attribute that `.to()` does "
            "not see, a loss weight. The traceback shows where they meet, not where the stray one "
            "was made; look at the operand that is on the unexpected device."
        ),
        severity=Severity.HIGH,
        specialist=MEMORY,
        remedies=(
            Remedy(
                change=(
                    "Create tensors on the device of their partner: `torch.zeros(n, "
                    "device=x.device)`, `torch.arange(n, device=x.device)`; register constants "
                    "with `register_buffer`"
                ),
                expected_effect="the step runs, and each device change stands in one place",
                verify=(
                    "print `{{p.device for p in model.parameters()}} | {{b.device for b in "
                    "model.buffers()}}`: one device"
                ),
                if_it_fails=(
                    "if there is one device there, the batch or the loss's weight is elsewhere"
                ),
            ),
            Remedy(
                change=(
                    "Move the batch as a whole at the head of the step: `batch = {{k: v.to(device, "
                    "non_blocking=True) for k, v in batch.items()}}`"
                ),
                expected_effect="no operand stays behind",
                verify="print `.device` of both operands just before the failing line",
                if_it_fails="if a list of layers is unregistered, use `nn.ModuleList`",
            ),
        ),
        confirm_by=(
            Ask("send the full traceback", "failure"),
            Ask("send the code of the module that the traceback ends in", "source"),
        ),
        brings_about=("rank-failed-first",),
        defaults={
            "devices_fact": "",
        },
        tailor=facts.devices,
    ),
    Cause(
        name="dtype-mismatch",
        title="Tensors of different types meet in one operation{dtypes_fact}",
        what=(
            "numpy's default float64 meets float32 weights, integer inputs meet a linear layer, "
            "float labels go to CrossEntropyLoss, int64 labels to BCEWithLogitsLoss, half weights "
            "meet float inputs outside autocast. The message names what was found and what was "
            "expected. Repair the conversion at the source, once, not in front of each layer."
        ),
        severity=Severity.HIGH,
        specialist=MEMORY,
        remedies=(
            Remedy(
                change=(
                    "Convert where data become tensors: `torch.as_tensor(x, dtype=torch.float32)`, "
                    "class indices `dtype=torch.long`, multi-label targets `dtype=torch.float32`"
                ),
                expected_effect="the step runs, and no cast is needed further on",
                verify="print `x.dtype, y.dtype, next(model.parameters()).dtype`",
                if_it_fails=(
                    "if they fit, a cast inside the model, or an autocast region, changes one of "
                    "them"
                ),
            ),
            Remedy(
                change=(
                    "Under mixed precision leave weights in float32 and run the forward pass "
                    "inside `torch.autocast`"
                ),
                expected_effect="inputs and weights are cast per operation",
                verify="the loss is float32, and the weights stay float32",
                if_it_fails="if `model.half()` was called somewhere, remove it",
            ),
        ),
        confirm_by=(
            Ask("send the full traceback", "failure"),
            Ask("print the dtypes of inputs, targets and weights"),
        ),
        brings_about=("rank-failed-first",),
        defaults={
            "dtypes_fact": "",
        },
        tailor=facts.dtypes,
    ),
    Cause(
        name="index-out-of-range",
        title="An index lies outside of the table it looks up{index_fact}",
        what=(
            "An embedding, gather or index operation got an index ≥ size or < 0. On the CPU it is "
            'a clear IndexError; on CUDA a "device-side assert triggered" is reported later, at '
            "an unrelated line, and every following CUDA call of the process fails too. It comes "
            "and goes with the data, since only some batches hold the index. Forcing the index "
            "into range would train on wrong rows: find where it arises."
        ),
        severity=Severity.HIGH,
        specialist=MEMORY,
        remedies=(
            Remedy(
                change=(
                    "Make the ids right where they are made: one tokenizer or category map for all "
                    "splits, an `<unk>` id for unseen values, padding id inside the table; or "
                    "enlarge the table to `max id + 1`"
                ),
                expected_effect=(
                    "a whole epoch passes; rare tokens go to their own row or to `<unk>`"
                ),
                verify=(
                    "`assert 0 <= int(ids.min()) and int(ids.max()) < table.num_embeddings` in the "
                    "dataset, over all splits"
                ),
                if_it_fails=(
                    "if it holds and the error stays, position ids or labels are the index, such "
                    "as a sequence longer than the position table"
                ),
            ),
        ),
        confirm_by=(
            Ask(
                "rerun the failing batch on the CPU (or with `CUDA_LAUNCH_BLOCKING=1`) and send "
                "that traceback with the range of the indices"
            ),
        ),
        brings_about=("rank-failed-first",),
        defaults={
            "index_fact": "",
        },
        tailor=facts.index,
    ),
    Cause(
        name="label-out-of-range",
        title="A label is not a class of the model{label_fact}",
        what=(
            "A class index is ≥ the number of outputs or < 0: labels that start at 1, an extra "
            'background or "ignore" class, a label map that differs between splits, −1 for '
            "missing. On CUDA it is a device-side assert in the loss. If the labels are what they "
            "should be, the output layer is too small: `output-size-mismatch`."
        ),
        severity=Severity.HIGH,
        specialist=DATA,
        remedies=(
            Remedy(
                change=(
                    "Map labels to {label_range} with one map for all splits: `{{name: i for i, "
                    "name in enumerate(sorted(names))}}`"
                ),
                expected_effect=(
                    "all labels are within {label_range}, and the loss at step 0 is log(C)"
                ),
                verify="`torch.bincount(labels)` has C entries and no negative label exists",
                if_it_fails="if labels are right, enlarge the output layer",
            ),
            Remedy(
                change=(
                    "Mark what must not count with the loss's own value: "
                    "`nn.CrossEntropyLoss(ignore_index=255)`"
                ),
                expected_effect="ignored positions add nothing, and no assert fires",
                verify=(
                    "the loss over a batch of ignored and valid labels equals that over the valid "
                    "ones"
                ),
                if_it_fails="if other values occur, list them with `y.unique()`",
            ),
        ),
        confirm_by=(
            Ask("print `y.min(), y.max()` over all splits and the model's number of outputs"),
        ),
        brings_about=("rank-failed-first",),
        defaults={
            "label_fact": "",
            "label_range": "0 … C−1",
        },
        tailor=facts.all_of(facts.classes, facts.label),
    ),
    Cause(
        name="non-contiguous-view",
        title="view() is called on a tensor whose memory order does not allow it",
        what=(
            "After `transpose`, `permute` or slicing, neighbouring elements are no longer "
            "neighbours in memory, and `view` cannot reinterpret them without a copy. `reshape` "
            "copies where needed. Check also that the new shape is meant: a view that merges "
            "transposed dimensions may be a wrong order of axes that the error saved you from."
        ),
        severity=Severity.MEDIUM,
        specialist=MEMORY,
        remedies=(
            Remedy(
                change=(
                    "`x.transpose(1, 2).reshape(b, t, d)` in place of `.view(b, t, d)`, or "
                    "`.contiguous()` after the transpose"
                ),
                expected_effect="the forward pass runs; one copy is made",
                verify=(
                    "compare with a loop over the batch on a small tensor: equal values, in the "
                    "intended order"
                ),
                if_it_fails="if values are in the wrong order, permute first, then reshape",
            ),
        ),
        confirm_by=(
            Ask("send the traceback", "failure"),
            Ask("send the line with the transpose", "source"),
        ),
        brings_about=("rank-failed-first",),
    ),
    Cause(
        name="api-misuse",
        title="A function is called in a way it does not accept{error_fact}",
        what=(
            "The call does not fit the callee: wrong number, name or type of arguments, an object "
            "of another kind (a class where an instance is meant, a tuple where a tensor is "
            "meant), an attribute that does not exist. The last line of the traceback says what "
            "was wanted; the last frame in your own code says where it was asked."
        ),
        severity=Severity.HIGH,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change=(
                    "Correct the call at the last frame in your own code after the signature: "
                    "`help(fn)`, or `inspect.signature(fn)` for the installed version"
                ),
                expected_effect="the line runs",
                verify="call it alone with one batch in a shell",
                if_it_fails=(
                    "if the signature fits, the object is not what it seems; print `type(obj)`"
                ),
            ),
            Remedy(
                change=(
                    "If the code worked with another version, pin that version or follow the "
                    "change log"
                ),
                expected_effect="code and library agree",
                verify="`python -m pip list` against the versions the code was written for",
                if_it_fails=(
                    "if versions agree, a local module shadows the library; print `module.__file__`"
                ),
            ),
        ),
        confirm_by=(
            Ask("send the full traceback", "failure"),
            Ask("send the lines around the last frame of your own code", "source"),
        ),
        brings_about=("rank-failed-first",),
        defaults={
            "error_fact": "",
        },
        tailor=facts.error,
    ),
    Cause(
        name="name-shadowed",
        title="A name was reused for something else{error_fact}",
        what=(
            "`loss = loss(out, y)` replaces the function by a tensor, and the second call raises "
            "\"'Tensor' object is not callable\"; `max`, `input`, `list`, a module or a class "
            "replaced by its instance do the like. It works once and fails the second time, or "
            "only in a notebook where an old cell left the name behind."
        ),
        severity=Severity.HIGH,
        specialist=DEBUGGING,
        remedies=(
            Remedy(
                change=(
                    "Use two names: `criterion = nn.CrossEntropyLoss()` and `loss = criterion(out, "
                    "y)`"
                ),
                expected_effect="the second iteration passes",
                verify="run two iterations in a fresh process",
                if_it_fails=(
                    "if it fails at the first, the name is imported from elsewhere; print "
                    "`type(name)`"
                ),
            ),
        ),
        confirm_by=(
            Ask("send the traceback", "failure"),
            Ask("send every assignment of the name that the traceback mentions", "source"),
        ),
        brings_about=("api-misuse", "rank-failed-first"),
        defaults={
            "error_fact": "",
        },
        tailor=facts.error,
    ),
)
