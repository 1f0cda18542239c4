"""Settings of calls of torch that stand in the place of another, and are of another kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import Result, Value, options_of
from traindx.analysis.program.training.facts.certainty import is_certain
from traindx.analysis.program.training.facts.roles import Misuse
from traindx.analysis.program.training.operations import LAYERS
from traindx.analysis.program.training.settings import constants_of, default_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

TENSOR, FLAG, NUMBER, WHOLE = "a tensor", "True or False", "a number", "a whole number"
TEXT, PAIR, SHARE, OBJECT = "a text", "a pair of numbers", "a share of one", "an object"
ANY = ""
Slots = tuple[tuple[str, str], ...]  # the name of each setting and what it takes, in order


def _slots(**taken: str) -> Slots:
    return tuple(taken.items())


_AVERAGED = {"size_average": FLAG, "reduce": FLAG, "reduction": TEXT}
_WEIGHTED = {"weight": TENSOR, **_AVERAGED}
_COUNTED = {"weight": TENSOR, "size_average": FLAG, "ignore_index": WHOLE, "reduce": FLAG,
            "reduction": TEXT}  # fmt: skip
# of losses, behind input and target; their layers take the same
LOSS_SETTINGS: dict[str, Slots] = {
    "cross_entropy": _slots(**_COUNTED, label_smoothing=NUMBER),
    "nll_loss": _slots(**_COUNTED),
    "mse_loss": _slots(**_AVERAGED),
    "l1_loss": _slots(**_AVERAGED),
    "smooth_l1_loss": _slots(**_AVERAGED, beta=NUMBER),
    "huber_loss": _slots(reduction=TEXT, delta=NUMBER),
    "kl_div": _slots(**_AVERAGED, log_target=FLAG),
    "binary_cross_entropy": _slots(**_WEIGHTED),
    "binary_cross_entropy_with_logits": _slots(**_WEIGHTED, pos_weight=TENSOR),
}
_RECURRENT = _slots(input_size=WHOLE, hidden_size=WHOLE, num_layers=WHOLE, bias=FLAG,
                    batch_first=FLAG, dropout=NUMBER, bidirectional=FLAG)  # fmt: skip
_CONVOLUTION = _slots(in_channels=WHOLE, out_channels=WHOLE, kernel_size=ANY, stride=ANY,
                      padding=ANY, dilation=ANY, groups=WHOLE, bias=FLAG)  # fmt: skip
_NORM = _slots(num_features=WHOLE, eps=NUMBER, momentum=NUMBER, affine=FLAG,
               track_running_stats=FLAG)  # fmt: skip
_DECAYED = _slots(params=ANY, lr=ANY, betas=PAIR, eps=NUMBER, weight_decay=NUMBER, amsgrad=FLAG)
LAYER_SETTINGS: dict[str, Slots] = {
    "torch.nn.Linear": _slots(in_features=WHOLE, out_features=WHOLE, bias=FLAG),
    "torch.nn.Dropout": _slots(p=NUMBER, inplace=FLAG),
    "torch.nn.LeakyReLU": _slots(negative_slope=NUMBER, inplace=FLAG),
    "torch.nn.ELU": _slots(alpha=NUMBER, inplace=FLAG),
    "torch.nn.LayerNorm": _slots(normalized_shape=ANY, eps=NUMBER, elementwise_affine=FLAG),
    "torch.nn.GroupNorm": _slots(num_groups=WHOLE, num_channels=WHOLE, eps=NUMBER, affine=FLAG),
    "torch.nn.MultiheadAttention": _slots(embed_dim=WHOLE, num_heads=WHOLE, dropout=NUMBER,
                                          bias=FLAG),
    "torch.nn.TransformerEncoderLayer": _slots(d_model=WHOLE, nhead=WHOLE, dim_feedforward=WHOLE,
                                               dropout=NUMBER),
    "torch.nn.Embedding": _slots(num_embeddings=WHOLE, embedding_dim=WHOLE, padding_idx=WHOLE,
                                 max_norm=NUMBER),
    **{f"torch.nn.{kind}": _RECURRENT for kind in ("RNN", "LSTM", "GRU")},
    **{f"torch.nn.Conv{n}d": _CONVOLUTION for n in (1, 2, 3)},
    **{f"torch.nn.BatchNorm{n}d": _NORM for n in (1, 2, 3)},
}  # fmt: skip
FUNCTION_SETTINGS: dict[str, Slots] = {
    "torch.nn.functional.dropout": _slots(input=ANY, p=NUMBER, training=FLAG, inplace=FLAG),
    "torch.nn.functional.leaky_relu": _slots(input=ANY, negative_slope=NUMBER, inplace=FLAG),
    "torch.nn.functional.gumbel_softmax": _slots(logits=ANY, tau=NUMBER, hard=FLAG, eps=NUMBER),
    "torch.nn.functional.cosine_similarity": _slots(x1=ANY, x2=ANY, dim=WHOLE, eps=NUMBER),
    "torch.optim.SGD": _slots(params=ANY, lr=ANY, momentum=NUMBER, dampening=SHARE,
                              weight_decay=NUMBER, nesterov=FLAG),
    **{f"torch.optim.{name}": _DECAYED for name in ("Adam", "AdamW")},
    "torch.optim.lr_scheduler.StepLR": _slots(optimizer=ANY, step_size=WHOLE, gamma=NUMBER),
    "torch.optim.lr_scheduler.ReduceLROnPlateau": _slots(optimizer=ANY, mode=TEXT, factor=NUMBER),
    "torch.utils.data.DataLoader": _slots(dataset=ANY, batch_size=WHOLE, shuffle=FLAG,
                                          sampler=OBJECT, batch_sampler=OBJECT, num_workers=WHOLE,
                                          collate_fn=OBJECT, pin_memory=FLAG, drop_last=FLAG),
    "torch.autograd.grad": _slots(outputs=ANY, inputs=ANY, grad_outputs=TENSOR, retain_graph=FLAG,
                                  create_graph=FLAG),
}  # fmt: skip
METHOD_SETTINGS: dict[str, Slots] = {
    ".backward": _slots(gradient=TENSOR, retain_graph=FLAG, create_graph=FLAG),
}
# nobody damps momentum by less; the next setting, weight decay, is that small
LEAST_DAMPENING = 0.01


def misplaced_settings(story: Story) -> Iterator[Misuse]:
    """Yield the calls that are given, by position, a constant that the place does not take."""
    for event in story.events:
        if event.act is not EventForm.CALL or event.is_own:
            continue
        skipped, slots = _settings(event)
        for (name, takes), given in zip(slots, event.args[skipped:], strict=False):
            if _is_spread(given):
                break
            gets = _refused(story, takes, given)
            if gets and is_certain(event):
                yield Misuse(event, given, f"{takes} for {name}", gets)
                break


def _settings(event: ProgramEvent) -> tuple[int, Slots]:
    """Return how many operands come first in a call, and what its settings take."""
    home, _, last = event.name.rpartition(".")
    if home == "torch.nn.functional" and last in LOSS_SETTINGS:
        return 2, LOSS_SETTINGS[last]
    if home == "torch.nn" and last.endswith("Loss"):
        return 0, LOSS_SETTINGS.get(LAYERS.get(last, ""), ())
    known = LAYER_SETTINGS.get(event.name) or FUNCTION_SETTINGS.get(event.name)
    return 0, known or METHOD_SETTINGS.get(event.name, ())


def _is_spread(value: Value) -> bool:
    return isinstance(value, Result) and value.maker == "operator.spread"


def _refused(story: Story, takes: str, given: Value) -> str:
    """Return what a place gets that it does not take; empty where it may take it."""
    found = constants_of(story, given) if takes else []
    if not found or len(found) != len(options_of(given)) or any(_takes(takes, c) for c in found):
        return ""
    is_parsed = default_of(story, given) is not None and any(isinstance(c, str) for c in found)
    return "" if is_parsed else _words(found[0])  # what argparse makes of a text is not known


def _takes(wanted: str, given: object) -> bool:
    """Tell whether a place takes a constant; a whole number may stand for another, 1 for True."""
    is_flag, is_number = isinstance(given, bool), isinstance(given, (int, float))
    if not isinstance(given, (bool, int, float, str)):
        return True
    if wanted == FLAG:
        return is_flag or (isinstance(given, int) and given in (0, 1))
    if wanted == SHARE:
        return is_number and not is_flag and (given == 0 or float(given) >= LEAST_DAMPENING)
    if wanted == NUMBER:
        return is_number and not is_flag
    if wanted == WHOLE:
        return isinstance(given, int) and not is_flag
    return isinstance(given, str) and wanted == TEXT


def _words(given: object) -> str:
    if isinstance(given, bool):
        return str(given)
    return TEXT if isinstance(given, str) else f"{given}"
