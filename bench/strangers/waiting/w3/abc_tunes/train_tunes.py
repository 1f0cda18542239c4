"""Generate folk tunes in ABC notation with a small GPT-2 trained from scratch."""
import random

import torch
from torch.utils.data import DataLoader, Dataset
from transformers import GPT2Config, GPT2LMHeadModel

random.seed(0)
torch.manual_seed(0)
CTX = 32


def fake_tune():
    # runs over the scale, a new start and step for every bar: enough to check the pipeline
    notes, bars = "CDEFGABcdefgab", []
    for _ in range(8):
        start, step = random.randrange(14), random.choice([1, 1, 1, 2])
        bars.append("".join(notes[(start + step * i) % 14] for i in range(6)))
    return "|".join(bars) + "\n"


corpus = "".join(fake_tune() for _ in range(200))
held = "".join(fake_tune() for _ in range(30))
alphabet = sorted(set(corpus))
stoi = {c: i for i, c in enumerate(alphabet)}


class Tunes(Dataset):
    def __init__(self, text):
        self.ids = torch.tensor([stoi[c] for c in text])

    def __len__(self):
        return (len(self.ids) - 1) // CTX

    def __getitem__(self, i):
        chunk = self.ids[i * CTX:i * CTX + CTX + 1]
        return chunk[:-1], chunk[1:]


cfg = GPT2Config(vocab_size=len(alphabet), n_positions=64, n_embd=48, n_layer=2, n_head=4,
                 bos_token_id=None, eos_token_id=None, attn_pdrop=0.0, resid_pdrop=0.05, embd_pdrop=0.05)
model = GPT2LMHeadModel(cfg)
train = DataLoader(Tunes(corpus), batch_size=16, shuffle=True, drop_last=True)
valid = DataLoader(Tunes(held), batch_size=16)
opt = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=3e-3, total_steps=4 * len(train))


def evaluate():
    model.eval()
    with torch.no_grad():
        ls = [model(input_ids=x, labels=y).loss.item() for x, y in valid]
    return sum(ls) / len(ls)


@torch.no_grad()
def sample(prompt, n=40):
    model.eval()
    ids = torch.tensor([[stoi[c] for c in prompt]])
    for _ in range(n):
        logits = model(input_ids=ids[:, -CTX:]).logits[:, -1]
        ids = torch.cat([ids, logits.argmax(-1, keepdim=True)], 1)
    return "".join(alphabet[i] for i in ids[0])


for epoch in range(4):
    model.train()
    for x, y in train:
        loss = model(input_ids=x, labels=y).loss
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        sched.step()
    print(f"epoch {epoch} train {loss.item():.3f} val {evaluate():.3f}")
print(sample("CDEFGA|GABcde|"))
