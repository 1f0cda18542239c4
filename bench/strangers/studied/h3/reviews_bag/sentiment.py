import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

PAD, VOCAB, MAX_LEN = 0, 400, 60


class Reviews(Dataset):
    """Fake reviews: some words are nice, some are nasty, 'not' (id 1) flips the next word."""

    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        mood = np.random.default_rng(42).normal(size=VOCAB)
        mood[:2] = 0
        self.rows = []
        for _ in range(n):
            words = rng.integers(1, VOCAB, rng.integers(5, MAX_LEN))
            sign = np.ones(len(words))
            sign[1:][words[:-1] == 1] = -1
            self.rows.append((words, float((mood[words] * sign).sum() > 0)))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        words, label = self.rows[i]
        ids = np.full(MAX_LEN, PAD, dtype=np.int64)
        ids[:len(words)] = words
        return torch.from_numpy(ids), len(words), label


class AttentivePool(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.query = nn.Linear(dim, 1)

    def forward(self, h, keep):
        score = self.query(h).squeeze(-1).masked_fill(~keep, -1e9)
        return (score.softmax(-1).unsqueeze(-1) * h).sum(1)


class Sentiment(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.rnn = nn.GRU(dim, dim, batch_first=True, bidirectional=True)
        self.pool = AttentivePool(2 * dim)
        self.out = nn.Linear(2 * dim, 1)

    def forward(self, ids, lengths):
        longest = lengths.max().item()
        ids = ids[:, :longest]
        h, _ = self.rnn(self.emb(ids))
        return self.out(self.pool(h, ids != PAD)).squeeze(-1)


def to_gpu(batch, device):
    ids, lengths, label = (t.to(device, non_blocking=True) for t in batch)
    return ids, lengths, label.float()


def run_epoch(model, loader, device, optimizer=None):
    training = optimizer is not None
    model.train(training)
    loss_sum = torch.zeros((), device=device)
    hits = torch.zeros((), device=device)
    with torch.set_grad_enabled(training):
        for batch in loader:
            ids, lengths, label = to_gpu(batch, device)
            logit = model(ids, lengths)
            loss = nn.functional.binary_cross_entropy_with_logits(logit, label)
            if training:
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
            loss_sum += loss.detach() * len(ids)
            hits += ((logit > 0) == label.bool()).sum()
    n = len(loader.dataset)
    return loss_sum.item() / n, hits.item() / n


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    pin = device.type == "cuda"
    train = DataLoader(Reviews(1000, 0), batch_size=50, shuffle=True, pin_memory=pin)
    test = DataLoader(Reviews(300, 1), batch_size=100, pin_memory=pin)
    model = Sentiment().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(1, 5):
        tr = run_epoch(model, train, device, optimizer)
        te = run_epoch(model, test, device)
        print(f"epoch {epoch}  train {tr[0]:.3f}/{tr[1]:.3f}  test {te[0]:.3f}/{te[1]:.3f}")


if __name__ == "__main__":
    main()
