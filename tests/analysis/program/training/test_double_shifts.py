"""Whether labels are moved before they reach a model that moves them itself."""

from __future__ import annotations

import pytest

from traindx.analysis.program.training.double_shifts import double_shifts
from traindx.analysis.program.training.program import program_of
from traindx.examples import script

PROGRAM = """
import torch
from torch.utils.data import DataLoader, Dataset
from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel, T5ForConditionalGeneration

class Chunks(Dataset):
    def __init__(self, ids):
        self.ids = torch.tensor(ids)
    def __len__(self):
        return 100
    def __getitem__(self, i):
        chunk = self.ids[i * 32:i * 32 + 33]
        {item}

model = {model}
for batch in DataLoader(Chunks(ids), batch_size=8, shuffle=True):
    {call}
    loss.backward()
"""
PAIR = "return chunk[:-1], chunk[1:]"
TABLE = 'return {"input_ids": chunk[:-1], "labels": chunk[1:].clone()}'
GPT = "GPT2LMHeadModel(GPT2Config())"
NAMED = "loss = model(input_ids=batch[0], labels=batch[1]).loss"


@pytest.mark.parametrize(
    ("item", "model", "call", "count"),
    [
        (PAIR, GPT, NAMED, 1),
        (PAIR, 'AutoModelForCausalLM.from_pretrained("gpt2")', NAMED, 1),
        (TABLE, GPT, 'loss = model(batch["input_ids"], labels=batch["labels"])[0]', 1),
        (TABLE, GPT, "loss = model(**batch).loss", 1),
        (
            PAIR,
            GPT,
            "at = torch.randint(900, (8,))\n"
            "    x = torch.stack([data[i:i + 32] for i in at])\n"
            "    y = torch.stack([data[i + 1:i + 33] for i in at])\n"
            "    loss = model(x, labels=y).loss",
            1,
        ),
        ("return chunk, chunk", GPT, NAMED, 0),
        (PAIR, 'T5ForConditionalGeneration.from_pretrained("t5-small")', NAMED, 0),
        (PAIR, "Own()", NAMED, 0),
        (PAIR, GPT, "loss = ce(model(input_ids=batch[0]).logits.flatten(0, 1), batch[1].flatten())", 0),
    ],
)  # fmt: skip
def test_labels_of_language_models(item: str, model: str, call: str, count: int) -> None:
    story = program_of(script(PROGRAM, item=item, model=model, call=call)).stories[0]
    assert (
        len({id(wanted.site and wanted.site.node) for _, wanted in double_shifts(story)}) == count
    )
