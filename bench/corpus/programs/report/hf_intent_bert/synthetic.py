"""Generated 'utterances' as token ids: every intent prefers its own keyword tokens, the rest is filler.

Some utterances carry a correction token followed by keywords of the true intent after
keywords of another one ("book a flight, no wait, cancel it").
"""
import numpy as np
from torch.utils.data import Dataset

PAD, CLS, SEP, CORRECTION = 0, 1, 2, 3
N_INTENTS = 6
KEYWORDS_PER_INTENT = 12
FIRST_KEYWORD = 4
FIRST_FILLER = FIRST_KEYWORD + N_INTENTS * KEYWORDS_PER_INTENT
N_FILLER = 100
VOCAB_SIZE = FIRST_FILLER + N_FILLER
MAX_BODY = 20


def _keywords(rng, intent, k):
    base = FIRST_KEYWORD + intent * KEYWORDS_PER_INTENT
    return base + rng.integers(0, KEYWORDS_PER_INTENT, size=k)


def _segment(rng, intent, n_keywords, n_filler):
    toks = np.concatenate(
        [_keywords(rng, intent, n_keywords), rng.integers(FIRST_FILLER, VOCAB_SIZE, size=n_filler)]
    )
    return rng.permutation(toks).tolist()


def make_example(rng):
    intent = int(rng.integers(N_INTENTS))
    if rng.random() < 0.3:
        other = int((intent + rng.integers(1, N_INTENTS)) % N_INTENTS)
        body = _segment(rng, other, 1, rng.integers(2, 5))
        body += [CORRECTION] + _segment(rng, intent, 2, rng.integers(2, 6))
    else:
        body = _segment(rng, intent, rng.integers(1, 4), rng.integers(5, 13))
        if rng.random() < 0.3:
            # a stray keyword of something else; with a single own keyword this is ambiguous
            body.insert(int(rng.integers(len(body))), int(_keywords(rng, rng.integers(N_INTENTS), 1)[0]))
    return {"input_ids": [CLS] + body[:MAX_BODY] + [SEP], "labels": intent}


class IntentDataset(Dataset):
    def __init__(self, size, seed):
        rng = np.random.default_rng(seed)
        self.examples = [make_example(rng) for _ in range(size)]

    def __len__(self):
        return len(self.examples)

    def __getitem__(self, i):
        return self.examples[i]
