"""Syllable recognition with CTC and a one-cycle schedule."""
from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

BLANK, N_SYL, FEAT = 0, 6, 12


class Utterances(Dataset):
    def __init__(self, n: int, seed: int) -> None:
        g = torch.Generator().manual_seed(seed)
        shapes = torch.randn(N_SYL + 1, FEAT, generator=torch.Generator().manual_seed(55))
        shapes[BLANK] = 0
        self.items: list[tuple[Tensor, Tensor]] = []
        for _ in range(n):
            target = torch.randint(1, N_SYL + 1, (int(torch.randint(2, 6, (1,), generator=g)),), generator=g)
            frames = []
            for s in target.tolist():
                frames += [s] * int(torch.randint(3, 6, (1,), generator=g)) + [BLANK] * int(torch.randint(1, 3, (1,), generator=g))
            x = shapes[torch.tensor(frames)] + 0.3 * torch.randn(len(frames), FEAT, generator=g)
            self.items.append((x, target))

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, i: int) -> tuple[Tensor, Tensor]:
        return self.items[i]


def collate(batch):
    xs, ys = zip(*batch)
    x_len, y_len = torch.tensor([len(x) for x in xs]), torch.tensor([len(y) for y in ys])
    return nn.utils.rnn.pad_sequence(xs, batch_first=True), x_len, torch.cat(ys), y_len


class Recogniser(nn.Module):
    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.conv = nn.Conv1d(FEAT, width, 5, padding=2)
        self.gru = nn.GRU(width, width // 2, bidirectional=True, batch_first=True)
        self.out = nn.Linear(width, N_SYL + 1)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        h = torch.relu(self.conv(x.transpose(1, 2))).transpose(1, 2)
        packed = nn.utils.rnn.pack_padded_sequence(h, lengths, batch_first=True, enforce_sorted=False)
        h, _ = nn.utils.rnn.pad_packed_sequence(self.gru(packed)[0], batch_first=True)
        return self.out(h).log_softmax(-1)


def edit_distance(a: list[int], b: list[int]) -> int:
    row = list(range(len(b) + 1))
    for i, ca in enumerate(a, 1):
        diag, row[0] = row[0], i
        for j, cb in enumerate(b, 1):
            diag, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diag + (ca != cb))
    return row[-1]


@torch.no_grad()
def error_rate(model: Recogniser, loader: DataLoader) -> float:
    model.eval()
    errors = total = 0
    for x, x_len, y, y_len in loader:
        best = model(x, x_len).argmax(-1)
        for path, t, ref in zip(best, x_len.tolist(), y.split(y_len.tolist())):
            hyp = [s for s in torch.unique_consecutive(path[:t]).tolist() if s != BLANK]
            errors += edit_distance(hyp, ref.tolist())
            total += len(ref)
    return errors / total


def main(epochs: int = 6) -> None:
    torch.manual_seed(3)
    train = DataLoader(Utterances(400, 1), batch_size=20, shuffle=True, collate_fn=collate)
    val = DataLoader(Utterances(80, 2), batch_size=40, collate_fn=collate)
    model = Recogniser()
    ctc = nn.CTCLoss(blank=BLANK, zero_infinity=True)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=8e-3, total_steps=epochs * len(train))
    for epoch in range(epochs):
        model.train()
        for x, x_len, y, y_len in train:
            log_probs = model(x, x_len).transpose(0, 1)
            loss = ctc(log_probs, y, x_len, y_len)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            opt.step()
            sched.step()
        print(f"epoch {epoch} ctc {loss.item():.3f} SER {error_rate(model, val):.3f} lr {sched.get_last_lr()[0]:.1e}")


if __name__ == "__main__":
    main()
