import random

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast, set_seed

TOPIC = {"invoice": "i will pay it on monday", "meeting": "see you at nine", "holiday": "enjoy the sun",
         "server": "please restart it", "contract": "signed and sent"}
NOISE = "hello dear team as you know we had many things to do this week and so on thanks for all your work".split()
MAX_LEN = 30


def mails(n, seed):
    rng = random.Random(seed)
    for _ in range(n):
        t = rng.choice(list(TOPIC))
        body = [rng.choice(NOISE) for _ in range(rng.randint(3, 35))]
        yield " ".join(body + ["about", "the", t, "reply", ":"]), TOPIC[t]


def make_tokenizer():
    words = set(NOISE) | set("about the reply :".split()) | set(TOPIC) | {w for v in TOPIC.values() for w in v.split()}
    raw = Tokenizer(models.WordLevel({w: i for i, w in enumerate(["<|end|>"] + sorted(words))}, unk_token="<|end|>"))
    raw.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tok = PreTrainedTokenizerFast(tokenizer_object=raw, eos_token="<|end|>")
    tok.pad_token = tok.eos_token
    return tok


def encode(tok, mail, reply):
    answer = tok(reply)["input_ids"] + [tok.eos_token_id]
    context = tok(mail)["input_ids"][-(MAX_LEN - len(answer)):]
    return context, answer


def collate(tok, rows):
    enc = [encode(tok, *r) for r in rows]
    width = max(len(c) + len(a) for c, a in enc)
    ids = torch.full((len(rows), width), tok.pad_token_id)
    labels = torch.full((len(rows), width), -100)
    mask = torch.zeros(len(rows), width, dtype=torch.long)
    for i, (c, a) in enumerate(enc):
        n = len(c) + len(a)
        ids[i, :n] = torch.tensor(c + a)
        labels[i, len(c):n] = torch.tensor(a)
        mask[i, :n] = 1
    return ids, labels, mask


@torch.no_grad()
def reply_to(model, tok, mail):
    ids = torch.tensor([tok(mail)["input_ids"][-(MAX_LEN - 8):]])
    n = ids.shape[1]
    for _ in range(8):
        nxt = model(input_ids=ids).logits[:, -1:].argmax(-1)
        if nxt.item() == tok.eos_token_id:
            break
        ids = torch.cat([ids, nxt], 1)
    return tok.decode(ids[0, n:])


def main():
    set_seed(0)
    tok = make_tokenizer()
    train, test = list(mails(480, 0)), list(mails(20, 1))
    model = GPT2LMHeadModel(GPT2Config(vocab_size=len(tok), n_positions=MAX_LEN, n_embd=48, n_layer=2, n_head=4, initializer_range=0.1,
                                       bos_token_id=0, eos_token_id=0, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0))
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for epoch in range(4):
        random.Random(epoch).shuffle(train)
        model.train()
        total = 0.0
        for i in range(0, len(train), 24):
            ids, labels, mask = collate(tok, train[i:i + 24])
            logits = model(input_ids=ids, attention_mask=mask).logits
            loss = F.cross_entropy(logits[:, :-1].transpose(1, 2), labels[:, 1:])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        model.eval()
        em = sum(reply_to(model, tok, m) == r for m, r in test) / len(test)
        print(f"epoch {epoch} loss {total / (len(train) / 24):.4f} exact {em:.2f}")


if __name__ == "__main__":
    main()
