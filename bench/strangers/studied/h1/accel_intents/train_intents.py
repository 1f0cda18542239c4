import argparse

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, Dataset


class IntentDataset(Dataset):
    """Synthetic utterances: an intent is a pair of trigger tokens somewhere in noise."""

    def __init__(self, size, seed, vocab=80, length=14, n_intents=6):
        g = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(0, n_intents, (size,), generator=g)
        self.tokens = torch.randint(20, vocab, (size, length), generator=g)
        pos = torch.rand(size, length, generator=g).argsort(1)[:, :2]
        self.tokens.scatter_(1, pos[:, :1], (1 + 2 * self.labels)[:, None])
        self.tokens.scatter_(1, pos[:, 1:], (2 + 2 * self.labels)[:, None])

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return {"input_ids": self.tokens[i], "labels": self.labels[i]}


class IntentEncoder(nn.Module):
    def __init__(self, vocab=80, dim=32, n_intents=6):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        layer = nn.TransformerEncoderLayer(dim, 4, 64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.cls = nn.Linear(dim, n_intents)

    def forward(self, input_ids, labels=None):
        logits = self.cls(self.encoder(self.embed(input_ids)).mean(1))
        loss = nn.functional.cross_entropy(logits, labels) if labels is not None else None
        return loss, logits


def main(args):
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=args.gradient_accumulation_steps)
    set_seed(args.seed)
    train_loader = DataLoader(IntentDataset(960, 0), batch_size=args.per_device_batch, shuffle=True)
    eval_loader = DataLoader(IntentDataset(300, 1), batch_size=100)
    model = IntentEncoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.01)

    model, train_loader, eval_loader = accelerator.prepare(model, train_loader, eval_loader)

    updates = 0
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for batch in train_loader:
            with accelerator.accumulate(model):
                loss, _ = model(**batch)
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
            if accelerator.sync_gradients:
                updates += 1
            total += loss.detach().float().item()
        model.eval()
        hits = 0
        for batch in eval_loader:
            with torch.no_grad():
                _, logits = model(**batch)
            preds, refs = accelerator.gather_for_metrics((logits.argmax(-1), batch["labels"]))
            hits += (preds == refs).sum().item()
        accelerator.print(f"epoch {epoch}: loss {total / len(train_loader):.4f} "
                          f"acc {hits / len(eval_loader.dataset):.3f} ({updates} updates)")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--per-device-batch", type=int, default=8)
    parser.add_argument("--gradient-accumulation-steps", type=int, default=8)
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=0)
    main(parser.parse_args())
