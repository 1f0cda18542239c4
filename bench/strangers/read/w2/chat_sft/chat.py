from __future__ import annotations

import json
from enum import Enum

import torch

IGNORE = -100
VOCAB = ["<pad>", "<sys>", "<usr>", "<bot>", "<end>"] + list("abcdefghijklmnopqrstuvwxyz ?!,.")
STOI = {c: i for i, c in enumerate(VOCAB)}
PAD = STOI["<pad>"]


class Role(Enum):
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


HEADER = {"system": "<sys>", "user": "<usr>", "assistant": "<bot>"}


def render(dialogue: list[dict]) -> tuple[list[int], list[str]]:
    """Flatten a dialogue into token ids plus, for every token, the role that wrote it."""
    ids, authors = [], []
    for turn in dialogue:
        body = [STOI[c] for c in turn["content"]] + [STOI["<end>"]]
        ids += [STOI[HEADER[turn["role"]]]] + body
        authors += ["template"] + [turn["role"]] * len(body)
    return ids, authors


def supervise(ids: list[int], authors: list[str]) -> list[int]:
    return [tok if who == Role.ASSISTANT else IGNORE for tok, who in zip(ids, authors)]


class ChatDataset(torch.utils.data.Dataset):
    def __init__(self, lines: list[str], max_len: int = 96) -> None:
        self.rows = []
        for line in lines:
            ids, authors = render(json.loads(line)["messages"])
            labels = supervise(ids, authors)
            self.rows.append((ids[:max_len], labels[:max_len]))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, i: int):
        return self.rows[i]


def collate(rows):
    width = max(len(ids) for ids, _ in rows)
    ids = torch.full((len(rows), width), PAD)
    labels = torch.full((len(rows), width), IGNORE)
    for k, (a, b) in enumerate(rows):
        ids[k, : len(a)] = torch.tensor(a)
        labels[k, : len(b)] = torch.tensor(b)
    return ids, labels
