from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.training.claims import cite, finding, program_of
from traindx.analysis.program.training.counted_padding import counted_padding
from traindx.analysis.program.training.ignored_padding import OtherIndex, other_indices
from traindx.analysis.program.training.token_labels import padded_labels
from traindx.examples import template
from traindx.registry import Finding, Findings, Run, Strength, detector

CAUSE = "padding-in-loss"


@detector(needs=("source",), suggests=("padding-in-loss",))
def check(run: Run) -> Findings:
    """Targets are padded and the loss ignores no index.

    ## What it detects
    `pad_sequence` over targets, with a padding value that cross-entropy does not leave out by
    itself (−100), or tokens filled up with a pad by hand, on their way to a cross-entropy without
    `ignore_index`, or to a loss written by hand that compares the targets with nothing. Also an
    `ignore_index` that is another number than the padding, and padded tokens of a tokenizer that
    become the labels of a model of Transformers as they are.

    ## Why it matters
    The model learns to predict padding, which is most of a batch of short texts: the loss looks
    good and the output is empty.

    ## What to do
    `ignore_index=pad_id`, or pad targets with −100.

    ## When it is wrong
    A padding class may be wanted, as an end of sequence is; hence only a remark where the way from
    the padding to the loss is not in sight. Targets that are packed, cut to their lengths or chosen
    by what is no pad are left alone.
    """
    program = program_of(run)
    seen: set[object] = set()
    for counted in counted_padding(program):
        seen.add(counted.loss.node)
        yield finding(
            "Padded positions of the targets count in the loss",
            (counted.padded, "targets are padded here"),
            (counted.loss, "and no index is ignored here"),
            at=counted.loss,
            strength=Strength.MODERATE,
            is_symptom=counted.is_certain,
            hint=None if counted.is_certain else Strength.MODERATE,
        )
    for other in other_indices(program):
        if other.loss.node not in seen:
            seen.add(other.loss.node)
            yield _other_index(other)
    for masking in padded_labels(program):
        at = masking.at
        if isinstance(at, ProgramEvent) and at.node not in seen:
            seen.add(at.node)
            claim = "The labels are padded tokens, and no pad is set to -100"
            made = cite(masking.because or at, "the tokenizer pads here")
            yield finding(claim, made, (at, masking.says), at=at)


def _other_index(found: OtherIndex) -> Finding:
    return finding(
        f"The loss ignores index {found.ignored}, and targets are padded with {found.pad}",
        (found.padded, f"targets are padded with {found.pad} here"),
        (found.loss, f"and {found.ignored} is ignored here"),
        at=found.loss,
    )


_program = template("""
from torch.nn.utils.rnn import pad_sequence

def collate(batch):
    inputs = pad_sequence([b[0] for b in batch], batch_first=True)
    targets = pad_sequence([b[1] for b in batch], batch_first=True{padding:})
    return inputs, targets

criterion = nn.CrossEntropyLoss({options:})
for inputs, targets in loader:
    loss = criterion(model(inputs).flatten(0, 1), {given:targets.flatten()})
    loss.backward()
""")
_by_hand = template("""
def encode(text, length):
    tokens = [VOCABULARY[c] for c in text]
    return torch.tensor(tokens + [PAD] * (length - len(tokens)))

def train(model, loader, optimizer):
    for tokens in loader:
        optimizer.zero_grad()
        scores = model(tokens)
        loss = {loss:F.cross_entropy(scores.view(-1, 50), tokens.view(-1))}
        loss.backward()
        optimizer.step()
""")
_vocabulary = template("""
from torch.nn.utils.rnn import pad_sequence

words = {words:["<unk>", "<pad>"] + sorted(set(tokens))}
index = {{w: i for i, w in enumerate(words)}}
PAD = index["<pad>"]

def collate(batch):
    inputs = pad_sequence([b[0] for b in batch], batch_first=True, padding_value=PAD)
    targets = pad_sequence([b[1] for b in batch], batch_first=True, padding_value=PAD)
    {after:pass}
    return inputs, targets

criterion = nn.CrossEntropyLoss(ignore_index={ignored:0})
for inputs, targets in DataLoader(pairs, 8, collate_fn=collate):
    optimizer.zero_grad()
    criterion(model(inputs).flatten(0, 1), targets.flatten()).backward()
    optimizer.step()
""")

FIRES = {
    "another index than the padding's": _vocabulary(),
    "the same of a list with a star": _vocabulary(words='["<unk>", "<pad>", *sorted(tokens)]'),
    "padded with zero": _program(),
    "padded by hand": _by_hand(),
}

SILENT = {
    "near miss: the padding's own index": _vocabulary(ignored="PAD"),
    "near miss: the same number": _vocabulary(ignored="1"),
    "near miss: marked before": _vocabulary(after="targets = targets.masked_fill(targets == 1, 0)"),
    "near miss: words in an order out of sight": _vocabulary(words="sorted(tokens) + ['<pad>']"),
    "near miss: padded input of one class per text": _by_hand("F.cross_entropy(scores, label)"),
    "ignored": _program(options="ignore_index=0"),
    "near miss: packed": _program(given="pack_padded_sequence(targets, lengths).data"),
    "near miss: what is no pad": _program(given="targets[targets != 0]"),
    "near miss: cut to its length": _program(given="targets[0, :lengths[0]]"),
    "near miss: pads become what is ignored": _program(
        given="torch.where(targets == 0, -100, targets).flatten()"
    ),
    "near miss: padded with what is ignored": _program(padding=", padding_value=-100"),
}
