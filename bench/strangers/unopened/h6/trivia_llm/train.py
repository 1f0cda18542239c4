import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader

from dataset import QADataset, pad_collate, qa_pairs
from vocab import WordTokenizer


class LM(nn.Module):
    def __init__(self, vocab, d=64, n_layer=2, ctx=32):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, d), nn.Parameter(torch.randn(ctx, d) * 0.02)
        enc = nn.TransformerEncoderLayer(d, 4, 4 * d, 0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(enc, n_layer, enable_nested_tensor=False)
        self.head = nn.Linear(d, vocab, bias=False)
        self.head.weight = self.tok.weight
        nn.init.normal_(self.tok.weight, std=0.05)

    def forward(self, ids):
        t = ids.size(1)
        mask = nn.Transformer.generate_square_subsequent_mask(t)
        return self.head(self.layers(self.tok(ids) + self.pos[:t], mask=mask, is_causal=True))


@torch.no_grad()
def answer(model, tok, question, limit=8):
    model.eval()
    ids = tok.encode(question)[:-1]
    start = len(ids)
    for _ in range(limit):
        nxt = int(model(torch.tensor([ids]))[0, -1].argmax())
        if nxt == tok.EOS:
            break
        ids.append(nxt)
    return tok.decode(ids[start:])


def main():
    torch.manual_seed(0)
    train, test = qa_pairs(500, 0), qa_pairs(30, 1)
    tok = WordTokenizer.from_texts([f"{q} {a}" for q, a in train])
    loader = DataLoader(QADataset(train, tok), batch_size=25, shuffle=True, collate_fn=pad_collate(tok))
    model = LM(len(tok))
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for epoch in range(6):
        model.train()
        total = 0.0
        for ids, labels in loader:
            logits = model(ids[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        score = sum(answer(model, tok, q) == a for q, a in test) / len(test)
        print(f"epoch {epoch} loss {total / len(loader):.4f} exact match {score:.2f}")
    print(test[0][0], "->", repr(answer(model, tok, test[0][0])))


if __name__ == "__main__":
    main()
