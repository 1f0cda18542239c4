import shutil
from dataclasses import dataclass
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader

from corpus import SyntheticReviews
from schedule import WarmupCosine


@dataclass
class Args:
    seed: int = 42
    lr: float = 5e-3
    epochs: int = 8
    batch_size: int = 32
    warmup_steps: int = 40
    output_dir: str = "out"
    resume_from_checkpoint: str | None = None
    stop_after: int | None = None


class Progress:
    def __init__(self):
        self.epochs_done = 0

    def state_dict(self):
        return vars(self).copy()

    def load_state_dict(self, state):
        vars(self).update(state)


class Classifier(nn.Module):
    def __init__(self, vocab=300, dim=32):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.ff = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Dropout(0.1), nn.Linear(dim, 2))

    def forward(self, tokens, labels):
        logits = self.ff(self.emb(tokens).mean(1))
        return nn.functional.cross_entropy(logits, labels), logits


def main(args):
    accelerator = Accelerator(cpu=True)
    set_seed(args.seed)
    model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    train_loader = DataLoader(SyntheticReviews(1600, seed=1), batch_size=args.batch_size, shuffle=True)
    eval_loader = DataLoader(SyntheticReviews(400, seed=2), batch_size=100)
    model, optimizer, train_loader, eval_loader = accelerator.prepare(model, optimizer, train_loader, eval_loader)
    scheduler = WarmupCosine(optimizer, args.lr, args.warmup_steps, args.epochs * len(train_loader))
    progress = Progress()
    accelerator.register_for_checkpointing(progress)

    if args.resume_from_checkpoint:
        accelerator.load_state(args.resume_from_checkpoint)
        accelerator.print(f"resumed after {progress.epochs_done} epochs")

    last = args.stop_after or args.epochs
    for epoch in range(progress.epochs_done, last):
        model.train()
        for batch in train_loader:
            loss, _ = model(**batch)
            accelerator.backward(loss)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
        model.eval()
        correct = 0
        for batch in eval_loader:
            with torch.no_grad():
                _, logits = model(**batch)
            correct += (logits.argmax(-1) == batch["labels"]).sum().item()
        progress.epochs_done += 1
        lr = optimizer.param_groups[0]["lr"]
        accelerator.print(f"epoch {epoch}: loss {loss.item():.4f} acc {correct / 400:.3f} lr {lr:.2e}")
        accelerator.save_state(str(Path(args.output_dir) / "latest"))


if __name__ == "__main__":
    main(Args(stop_after=5))
    main(Args(resume_from_checkpoint="out/latest"))
    shutil.rmtree("out")
