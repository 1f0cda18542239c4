import tempfile
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset

from router.model import BagClassifier, tensorise
from router.shards import TEAMS, export_shards, read_shards, vocabulary


def load(folder, vocab):
    return TensorDataset(*tensorise(read_shards(folder), vocab, TEAMS))


def main():
    set_seed(0)
    accelerator = Accelerator(cpu=True)
    vocab = vocabulary()
    with tempfile.TemporaryDirectory() as tmp:
        train_dir, eval_dir = Path(tmp, "train"), Path(tmp, "eval")
        train_dir.mkdir()
        eval_dir.mkdir()
        export_shards(train_dir, months=range(6), per_shard=100, seed=1)
        export_shards(eval_dir, months=[5], per_shard=300, seed=2)
        train_ds, eval_ds = load(train_dir, vocab), load(eval_dir, vocab)

    train_dl = DataLoader(train_ds, batch_size=32, shuffle=True)
    eval_dl = DataLoader(eval_ds, batch_size=100)
    model = BagClassifier(len(vocab), len(TEAMS))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    model, optimizer, train_dl, eval_dl = accelerator.prepare(model, optimizer, train_dl, eval_dl)
    accelerator.print(f"{len(train_ds)} training tickets, {len(train_dl)} steps per epoch")

    for epoch in range(10):
        model.train()
        total = 0.0
        for ids, team in train_dl:
            loss = torch.nn.functional.cross_entropy(model(ids), team)
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
            total += loss.item()
        model.eval()
        hits = []
        for ids, team in eval_dl:
            with torch.no_grad():
                guess = model(ids).argmax(-1)
            guess, team = accelerator.gather_for_metrics((guess, team))
            hits.append((guess == team).float())
        accelerator.print(f"epoch {epoch} loss {total / len(train_dl):.3f} accuracy {torch.cat(hits).mean():.3f}")


if __name__ == "__main__":
    main()
