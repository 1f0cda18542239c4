from traindx.analysis.program.training.claims import cited, each_place, finding, node_of
from traindx.analysis.program.training.token_labels import emptied_labels
from traindx.examples import template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("labels-all-masked",))
def check(run: Run) -> Findings:
    """No label is left in the loss: all of them are −100.

    ## What it detects
    Labels that are masked up to the length of a prompt that was padded to the same `max_length` as
    the whole; a response template that is encoded with a BOS token in front and looked for inside
    of texts; labels that are made of −100 and never set; labels that are kept by a comparison that
    is never true, as of a text with a member of an `Enum`; a marker of the answer that is looked
    for in texts that are built with another one.

    ## Why it matters
    Cross entropy over no label is NaN, or 0 where it is guarded: nothing is learnt.

    ## What to do
    Tokenize the prompt without padding, or count its attention mask; encode a template with
    `add_special_tokens=False`.

    ## When it is wrong
    A prompt that is padded to less than the whole leaves labels, and is left alone.
    """
    for found in each_place(run, emptied_labels, lambda found: node_of(found.at)):
        yield finding(
            f"No label is left in the loss: {found.says}",
            (found.at, found.says),
            *cited(found.because, "counted here"),
        )


_PROGRAM = """
from transformers import AutoTokenizer, AutoModelForCausalLM

tokenizer = AutoTokenizer.from_pretrained("gpt2")
model = AutoModelForCausalLM.from_pretrained("gpt2")
optimizer = torch.optim.AdamW(model.parameters())

for prompt, answer in pairs:
    whole = tokenizer(prompt + answer, padding="max_length", truncation=True, max_length=256,
                      return_tensors="pt")
    asked = tokenizer(prompt, {options})
    ids = whole["input_ids"]
    {labels}
    loss = model(input_ids=ids, attention_mask=whole["attention_mask"], labels=labels).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
_PADDED = 'padding="max_length", truncation=True, max_length=256, return_tensors="pt"'
_HEAD = 'labels = ids.clone()\n    labels[:, : asked["input_ids"].shape[1]] = -100'
_program = template(_PROGRAM, options=_PADDED, labels=_HEAD)


def _marked(marker: str) -> Run:
    text = "text = f'### Q: {prompt} ### A: {answer}'; labels = ids.clone()"
    return _program("", f"{text}; labels[:, : text.find({marker!r})] = -100")


_collator = template("""
class Collator:
    def __init__(self, tokenizer, template):
        self.template = tokenizer.encode(template{how})

    def __call__(self, rows):
        labels = torch.full((len(rows), 64), -100)
        for k, ids in enumerate(rows):
            for i in range(len(ids)):
                if ids[i : i + len(self.template)] == self.template:
                    labels[k, i : len(ids)] = torch.tensor(ids[i:])
        return labels

class Words:
    def __init__(self, vocabulary):
        self.bos_id, self.vocabulary = 1, vocabulary

    def encode(self, text, add_bos=True):
        ids = [self.vocabulary[w] for w in text.split()]
        return [self.bos_id] + ids if add_bos else ids

words = Words(vocabulary)
collate = Collator(words, "### Answer:")
loader = torch.utils.data.DataLoader([words.encode(t) for t in texts], collate_fn=collate)
""")

_roles = template("""
import json
from enum import Enum

class Role({bases:Enum}):
    USER = "user"
    BOT = "bot"

def labels_of(line):
    turn = json.loads(line)
    return [token if turn["role"] == {role} else -100 for token in turn["tokens"]]

rows = [labels_of(line) for line in open("chat.jsonl")]
""")

FIRES = {
    "a text is compared with a member of an enumeration": _roles("Role.BOT"),
    "the length of a padded prompt": _program(),
    "the same with lists": _program(
        labels='n = len(asked["input_ids"][0])\n'
        '    labels = [-100] * n + whole["input_ids"][0].tolist()[n:]'
    ),
    "never set": _program(labels="labels = torch.full_like(ids, -100)"),
    "a template with a BOS token in front": _collator(""),
    "a marker that is in no text": _marked("### Answer:"),
}

SILENT = {
    "near miss: a marker of the text": _marked("### A:"),
    "near miss: with the value of a member": _roles("Role.BOT.value"),
    "near miss: with a member that is a text": _roles("Role.BOT", "str, Enum"),
    "the length of the prompt": _program('return_tensors="pt"'),
    "near miss: its attention mask is counted": _program(
        labels='labels = ids.clone()\n    labels[:, : int(asked["attention_mask"].sum())] = -100'
    ),
    "near miss: padded to less": _program('padding="max_length", max_length=64'),
    "near miss: set afterwards": _program(
        labels="labels = torch.full_like(ids, -100)\n    labels[:, 9:] = ids[:, 9:]"
    ),
    "near miss: only padding": _program(
        labels='labels = ids.clone()\n    labels[whole["attention_mask"] == 0] = -100'
    ),
    "near miss: a template as it is": _collator(", add_bos=False"),
}
