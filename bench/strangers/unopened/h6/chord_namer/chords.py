# learn to spell chords: "Cm7" -> "C Eb G Bb" with a small causal transformer
import random, itertools
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

NOTES = "C Db D Eb E F Gb G Ab A Bb B".split()
KINDS = {"": (0, 4, 7), "m": (0, 3, 7), "7": (0, 4, 7, 10), "m7": (0, 3, 7, 10), "maj9": (0, 4, 7, 11, 2), "sus": (0, 5, 7), "5": (0, 7)}
INSTR = "guitar piano harp organ flute oboe".split()
TOKENS = ["PAD", "END", "SEP", "by"] + NOTES + [f"kind:{k}" for k in KINDS] + INSTR
ID = {t: i for i, t in enumerate(TOKENS)}
PAD, END = ID["PAD"], ID["END"]


def example(root, kind, instr):
    prompt = [ID[instr], ID["by"], ID[NOTES[root]], ID[f"kind:{kind}"], ID["SEP"]]
    answer = [ID[NOTES[(root + s) % 12]] for s in KINDS[kind]]
    return prompt, answer


def pack(examples):
    seqs, masks = [], []
    for prompt, answer in examples:
        masks.append(torch.tensor([0.0] * len(prompt) + [1.0] * len(answer)))
        seqs.append(torch.tensor(prompt + answer + [END]))
    ids = pad_sequence(seqs, batch_first=True, padding_value=PAD)
    mask = torch.zeros(ids.shape)
    for row, m in zip(mask, masks):
        row[: len(m)] = m
    return ids, mask


class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.o = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.ff = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4)
        a = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(a.transpose(1, 2).reshape(b, t, d))
        return x + self.ff(self.n2(x))


class Speller(nn.Module):
    def __init__(self, d=48):
        super().__init__()
        self.e, self.p = nn.Embedding(len(TOKENS), d), nn.Embedding(16, d)
        self.blocks = nn.Sequential(Block(d, 4), Block(d, 4))
        self.n, self.out = nn.LayerNorm(d), nn.Linear(d, len(TOKENS))

    def forward(self, ids):
        return self.out(self.n(self.blocks(self.e(ids) + self.p.weight[: ids.shape[1]])))

    @torch.no_grad()
    def spell(self, prompt, limit=8):
        ids = list(prompt)
        for _ in range(limit):
            nxt = self(torch.tensor([ids]))[0, -1].argmax().item()
            if nxt == END:
                break
            ids.append(nxt)
        return ids[len(prompt):]


random.seed(3)
torch.manual_seed(3)
everything = [example(*c) for c in itertools.product(range(12), KINDS, INSTR)]
random.shuffle(everything)
train, test = everything[:-80], everything[-80:]

net = Speller()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(14):
    random.shuffle(train)
    run = []
    for i in range(0, len(train), 32):
        ids, mask = pack(train[i : i + 32])
        logp = net(ids[:, :-1]).log_softmax(-1)
        nll = -logp.gather(-1, ids[:, 1:, None]).squeeze(-1)
        loss = (nll * mask[:, 1:]).sum() / mask[:, 1:].sum()
        opt.zero_grad(); loss.backward(); opt.step()
        run.append(loss.item())
    if epoch % 3 == 1:
        outs = [net.spell(p) for p, _ in test]
        prefix = sum(o[: len(a)] == a for o, (_, a) in zip(outs, test)) / len(test)
        exact = sum(o == a for o, (_, a) in zip(outs, test)) / len(test)
        length = sum(map(len, outs)) / len(outs)
        print(f"epoch {epoch:2d} loss {sum(run) / len(run):.4f} notes right {prefix:.2f} exact {exact:.2f} mean length {length:.1f}")
