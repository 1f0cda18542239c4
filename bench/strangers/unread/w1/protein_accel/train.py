"""Secondary structure from sequence windows with accelerate; runs on one or several processes."""
import math

import torch
import torch.nn as nn
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset

AMINO, WINDOW, CLASSES = 20, 9, 3


def windows(n, seed):
    g = torch.Generator().manual_seed(seed)
    seq = torch.randint(AMINO, (n, WINDOW), generator=g)
    propensity = torch.randn(AMINO, CLASSES, generator=torch.Generator().manual_seed(100))
    kernel = torch.exp(-((torch.arange(WINDOW) - WINDOW // 2) / 2.0) ** 2)
    score = (propensity[seq] * kernel[:, None]).sum(1) + 0.2 * torch.randn(n, CLASSES, generator=g)
    return TensorDataset(seq, score.argmax(1))


class Folder(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.embed = nn.Embedding(AMINO, dim)
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(WINDOW * dim, 64), nn.GELU(), nn.Dropout(0.1))
        self.coil = nn.Linear(64, CLASSES)

    def forward(self, seq):
        return self.coil(self.body(self.embed(seq)))


def main(epochs=4, accumulate=3):
    set_seed(55)
    acc = Accelerator(gradient_accumulation_steps=accumulate)
    train = DataLoader(windows(2040, 1), batch_size=20, shuffle=True)
    val = DataLoader(windows(505, 2), batch_size=50)
    net = Folder()
    opt = torch.optim.AdamW(net.parameters(), lr=4e-3)
    total = epochs * math.ceil(len(train) / acc.num_processes / accumulate)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: max(0.05, 1 - s / total))
    net, opt, train, val = acc.prepare(net, opt, train, val)
    criterion = nn.CrossEntropyLoss()

    for epoch in range(epochs):
        net.train()
        for seq, state in train:
            with acc.accumulate(net):
                loss = criterion(net(seq), state)
                acc.backward(loss)
                if acc.sync_gradients:
                    acc.clip_grad_norm_(net.parameters(), 1.0)
                opt.step()
                if acc.sync_gradients:
                    sched.step()
                opt.zero_grad()
        net.eval()
        hits = seen = 0
        for seq, state in val:
            with torch.no_grad():
                guess = net(seq).argmax(-1)
            guess, state = acc.gather_for_metrics((guess, state))
            hits += (guess == state).sum().item()
            seen += state.numel()
        acc.print(f"epoch {epoch} loss {loss.item():.3f} lr {sched.get_last_lr()[0]:.5f} acc {hits / seen:.3f} of {seen}")
    acc.wait_for_everyone()
    acc.save(acc.unwrap_model(net).state_dict(), "/tmp/folder_w1.pt")


if __name__ == "__main__":
    main()
