import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast, set_seed

from clauses import contracts
from settings import load

RUN = {"max_len": 96, "lr": 3e-3, "epochs": 4, "batch_size": 24}


def tokenizer_for(rows):
    words = sorted({w for p, a in rows for w in (p + " " + a).split()} - {"[end]"})
    raw = Tokenizer(models.WordLevel({w: i for i, w in enumerate(["[pad]", "[end]", "[unk]"] + words)}, unk_token="[unk]"))
    raw.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="[pad]", eos_token="[end]", unk_token="[unk]")


class Preprocess:
    def __init__(self, tok, max_length):
        self.tok, self.max_length = tok, max_length

    def __call__(self, rows):
        enc = self.tok([f"{p} {a}" for p, a in rows], truncation=True, max_length=self.max_length,
                       padding=True, return_tensors="pt")
        labels = enc["input_ids"].masked_fill(enc["attention_mask"] == 0, -100)
        for row, (p, _) in zip(labels, rows):
            row[: len(self.tok(p)["input_ids"])] = -100
        return {"input_ids": enc["input_ids"], "attention_mask": enc["attention_mask"], "labels": labels}


@torch.no_grad()
def accuracy(model, tok, rows):
    model.eval()
    good = 0
    for p, a in rows:
        ids = tok(p, return_tensors="pt")["input_ids"]
        n = ids.shape[1]
        for _ in range(4):
            ids = torch.cat([ids, model(input_ids=ids).logits[:, -1:].argmax(-1)], 1)
        good += tok.decode(ids[0, n:]) == a
    return good / len(rows)


def main():
    set_seed(0)
    s = load(RUN)
    train, test = contracts(480, 0), contracts(24, 1)
    tok = tokenizer_for(train)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=len(tok), n_positions=128, n_embd=s.d_model, n_layer=s.n_layers, n_head=4,
                                       bos_token_id=1, eos_token_id=1,
                                       resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, initializer_range=0.1))
    loader = DataLoader(train, s.batch_size, shuffle=True, collate_fn=Preprocess(tok, s.max_length))
    opt = torch.optim.AdamW(model.parameters(), lr=s.lr)
    for epoch in range(s.epochs):
        model.train()
        total, answers = 0.0, 0
        for batch in loader:
            loss = model(**batch).loss
            opt.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            total += loss.item()
            answers += (batch["labels"] != -100).any(1).sum().item()
        print(f"epoch {epoch} loss {total / len(loader):.4f} rows with targets {answers}/{len(train)}")
    short = [r for r in test if len(r[0].split()) < 35]
    long = [r for r in test if len(r[0].split()) >= 35]
    print(f"exact match short contracts {accuracy(model, tok, short):.2f}, long contracts {accuracy(model, tok, long):.2f}")


if __name__ == "__main__":
    main()
