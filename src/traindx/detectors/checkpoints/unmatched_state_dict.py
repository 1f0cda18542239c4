from traindx.analysis.program.training.claims import finding, program_of
from traindx.analysis.program.training.kinds import Kind
from traindx.analysis.program.training.restoration import asked_in_vain
from traindx.analysis.program.training.state_keys import ForeignState, foreign_states
from traindx.examples import template
from traindx.registry import Finding, Findings, Run, detector

SHOWN = 4  # keys of each side


@detector(needs=("source",), suggests=("state-dict-key-mismatch",))
def check(run: Run) -> Findings:
    """The keys of a loaded state dict are not those of the model.

    ## What it detects
    `load_state_dict` of a state that the program itself takes from another model, directly or by
    way of a file, where no key begins with an attribute of the model it is loaded into, after all
    that is done to the keys: another name for the encoder, the `module.` of a wrapped model, or a
    whole checkpoint in place of the state in it. A strict load of a state that has a layer which
    the model has not. A state that is asked for (`get`) by a key under which nothing is saved.

    ## Why it matters
    With `strict=False` nothing is loaded and nothing is said: fine-tuning starts from random
    weights. Without it, loading fails.

    ## What to do
    Rename the keys, or load the state of the part into the part; print what `load_state_dict`
    returns: `missing_keys` and `unexpected_keys`.

    ## When it is wrong
    States of models that are out of sight, keys that are computed otherwise and files that several
    places write are left alone.
    """
    seen: set[object] = set()
    for found in foreign_states(program_of(run)):
        if found.event.node not in seen:
            seen.add(found.event.node)
            yield _finding(found)
    for asked in asked_in_vain(program_of(run)):
        if asked.is_of(Kind.MODEL) and asked.restored.event.node not in seen:
            seen.add(asked.restored.event.node)
            yield finding(
                f"The checkpoint has no key {asked.key!r}, so the model is never restored",
                (asked.restored, f"restored only from {asked.key!r}"),
                (asked.save, f"saved here under {', '.join(sorted(asked.written))}"),
            )


def _finding(found: ForeignState) -> Finding:
    held, wanted = (", ".join(f"{k}.*" for k in sorted(keys)[:SHOWN])
                    for keys in (found.held, found.wanted))  # fmt: skip
    how = "the model's own state takes its place" if found.is_merged else "strict=False hides it"
    ending = f"nothing is loaded, and {how}" if found.is_silent else "loading fails"
    return finding(
        f"The loaded state has keys that the model does not have: {ending}",
        (found.event, f"the state has {held}; the model has {wanted}"),
    )


_PROGRAM = """
class Pretrained(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(8, 8)
        self.decoder = nn.Linear(8, 8)

class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.{name} = nn.Linear(8, 8)
        self.head = nn.Linear(8, 2)

source = {source}
torch.save({{"weights": source.state_dict(), "epoch": 3}}, "pretrained.pt")
net = Classifier()
state = torch.load("pretrained.pt")["weights"]
{rename}
{load}
"""
_STRICT = "net.load_state_dict(state)"
_LOAD = "net.load_state_dict(state, strict=False)"
_program = template(_PROGRAM, name="backbone", rename="", source="Pretrained()", load=_LOAD)

_AVERAGED = "torch.optim.swa_utils.AveragedModel(Pretrained())"
_STRIP = "state = {k.removeprefix('module.'): v for k, v in state.items() if 'decoder' not in k}"

_BY_NAME = """own = net.state_dict()
for k, v in state.items():
    if k in own:
        own[k].copy_(v)"""
_FIT = "own = net.state_dict()\nfit = {k: v for k, v in state.items() if k in own}\n"
_MERGED = "own.update(fit)\nnet.load_state_dict(own)"

FIRES = {
    "what fits is merged into the own state, and nothing does": _program(load=_FIT + _MERGED),
    "a strict load of a state with a part more": _program("encoder", load=_STRICT),
    "the whole checkpoint in place of its weights": _program(
        "encoder", "state = torch.load('pretrained.pt')"
    ),
    "another name": _program(),
    "copied by name, where there is one": _program(load=_BY_NAME),
    "a prefix that the keys do not have is removed": _program(rename=_STRIP),
    "an averaged model": _program("encoder", source=_AVERAGED),
    "an averaged model, another prefix removed": _program(
        "encoder",
        "state = {k.replace('_orig_mod.', ''): v for k, v in state.items()}",
        source=_AVERAGED,
    ),
    "straight from the other model": _program(
        "trunk", load="net.load_state_dict(source.state_dict(), strict=False)"
    ),
    "renamed in a loop to something else": _program(
        rename="new = {}\nfor k, v in state.items():\n    new['model.' + k] = v\nstate = new"
    ),
}

SILENT = {
    "near miss: copied by name": _program("encoder", load=_BY_NAME),
    "near miss: what fits is merged, and the encoder does": _program(
        "encoder", load=_FIT + _MERGED
    ),
    "near miss: the part is taken out first": _program(
        "encoder", "del state['decoder.weight'], state['decoder.bias']", load=_STRICT
    ),
    "near miss: the part is taken out by its name": _program(
        "encoder",
        "for k in list(state):\n    if 'decoder' in k:\n        state.pop(k)",
        load=_STRICT,
    ),
    "the same name": _program("encoder"),
    "near miss: an averaged model whose prefix is removed": _program(
        "encoder", _STRIP, source=_AVERAGED
    ),
    "near miss: renamed": _program(
        rename="state = {k.replace('encoder.', 'backbone.'): v for k, v in state.items()}"
    ),
    "near miss: renamed in a loop": _program(
        rename="new = {}\nfor k, v in state.items():\n"
        "    new['backbone' + k[len('encoder'):]] = v\nstate = new"
    ),
    "near miss: renamed by a function out of sight": _program(rename="state = convert(state)"),
    "near miss: keys out of sight": _program(
        rename="state = {rename(k): v for k, v in state.items()}"
    ),
    "near miss: into the part": _program(
        rename="state = {k.split('.', 1)[1]: v for k, v in state.items()}",
        load="net.backbone.load_state_dict(state)",
    ),
}
