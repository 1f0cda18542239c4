"""Utterances for a small voice assistant, filled in from templates."""
import random

import torch
from torch.utils.data import Dataset

TEMPLATES = {
    "set_alarm": ["wake me up at {time}", "set an alarm for {time}", "i need an alarm {day} at {time}"],
    "weather": ["will it rain in {city} {day}", "what is the weather in {city}", "how cold is it in {city} {day}"],
    "play_music": ["play some {genre}", "put on {genre} in the {room}", "i want to hear {genre} {day}"],
    "lights": ["turn off the lights in the {room}", "make it brighter in the {room}", "set lights in the {room} to low"],
    "travel": ["book a train to {city} {day}", "how do i get to {city} at {time}", "find me a ticket to {city}"],
    "reminder": ["remind me {day} to call {name}", "do not let me forget {name} at {time}", "i need to meet {name} {day}"],
}
SLOTS = {
    "time": ["seven", "eight thirty", "noon", "half past six", "ten"],
    "day": ["today", "tomorrow", "on monday", "on friday", "this weekend"],
    "city": ["paris", "oslo", "rome", "lisbon", "vienna"],
    "genre": ["jazz", "rock", "techno", "old blues", "quiet piano"],
    "room": ["kitchen", "bedroom", "hall", "living room"],
    "name": ["anna", "my brother", "the dentist", "peter"],
}
FILLER = ["please", "hey", "uh", "could you", "ok", "now", "well", "thanks"]
INTENTS = sorted(TEMPLATES)
PAD, UNK = 0, 1


def utterance(rng, word_dropout=0.2):
    intent = rng.randrange(len(INTENTS))
    text = rng.choice(TEMPLATES[INTENTS[intent]])
    words = text.format(**{k: rng.choice(v) for k, v in SLOTS.items()}).split()
    words = [w for w in words if rng.random() > word_dropout]  # bad microphones
    if rng.random() < 0.5:
        words = rng.choice(FILLER).split() + words
    if rng.random() < 0.3:
        words += rng.choice(FILLER).split()
    return words or ["uh"], intent


class IntentDataset(Dataset):
    def __init__(self, n, seed, vocab=None):
        rng = random.Random(seed)
        self.rows = [utterance(rng) for _ in range(n)]
        if vocab is None:
            words = sorted({w for ws, _ in self.rows for w in ws})
            vocab = {w: i + 2 for i, w in enumerate(words)}
        self.vocab = vocab

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, idx):
        words, label = self.rows[idx]
        return [self.vocab.get(w, UNK) for w in words], label


def collate(batch):
    seqs, labels = zip(*batch)
    longest = max(map(len, seqs))
    tokens = torch.full((len(seqs), longest), PAD, dtype=torch.long)
    for i, s in enumerate(seqs):
        tokens[i, :len(s)] = torch.tensor(s)
    return tokens, torch.tensor(labels)
