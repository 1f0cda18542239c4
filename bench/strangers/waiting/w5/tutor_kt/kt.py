"""Knowledge tracing: predict whether a pupil answers exercise t right, from the exercises before t."""
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

N_SKILLS, SEQ, BATCH = 12, 40, 32


def simulate(n_pupils, rng):
    skill = rng.integers(N_SKILLS, size=(n_pupils, SEQ))
    ability = rng.normal(0, 1, size=(n_pupils, N_SKILLS))
    right = np.zeros((n_pupils, SEQ), dtype=np.int64)
    for t in range(SEQ):
        a = ability[np.arange(n_pupils), skill[:, t]]
        right[:, t] = rng.random(n_pupils) < 1 / (1 + np.exp(-2 * a))
        ability[np.arange(n_pupils), skill[:, t]] += 0.15
    return torch.from_numpy(skill), torch.from_numpy(right)


class MonotonicAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.h, self.dk = heads, dim // heads
        self.wq, self.wk, self.wv = (nn.Linear(dim, dim) for _ in range(3))
        self.wo = nn.Linear(dim, dim)
        self.decay = nn.Parameter(torch.zeros(heads, 1, 1))

    def split(self, x):
        return x.unflatten(-1, (self.h, self.dk)).transpose(1, 2)

    def forward(self, query, key, value):
        t = query.size(1)
        q, k, v = self.split(self.wq(query)), self.split(self.wk(key)), self.split(self.wv(value))
        score = q @ k.mT / self.dk ** 0.5
        pos = torch.arange(t, device=query.device)
        dist = (pos[:, None] - pos[None, :]).clamp(min=0).float()
        score = score - F.softplus(self.decay) * dist / t
        # interaction t contains the answer to exercise t and must stay hidden
        visible = torch.tril(torch.ones(t, t, dtype=torch.bool, device=query.device), diagonal=-1)
        att = score.masked_fill(~visible, -torch.inf).softmax(dim=-1)
        return self.wo((att @ v).transpose(1, 2).flatten(2))


class AKT(nn.Module):
    def __init__(self, dim=48, heads=4):
        super().__init__()
        self.exercise = nn.Embedding(N_SKILLS, dim)
        self.interaction = nn.Embedding(2 * N_SKILLS, dim)
        self.att = MonotonicAttention(dim, heads)
        self.norm = nn.LayerNorm(dim)
        self.out = nn.Sequential(nn.Linear(2 * dim, dim), nn.ReLU(), nn.Dropout(0.1), nn.Linear(dim, 1))

    def forward(self, skill, right):
        e = self.exercise(skill)
        i = self.interaction(skill + N_SKILLS * right)
        h = self.norm(self.att(e, e, i))
        return self.out(torch.cat([h, e], -1)).squeeze(-1)


def main():
    torch.manual_seed(42)
    rng = np.random.default_rng(42)
    tr_s, tr_r = simulate(800, rng)
    te_s, te_r = simulate(200, rng)
    model = AKT()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(5):
        model.train()
        losses = []
        for ix in torch.randperm(len(tr_s)).split(BATCH):
            logit = model(tr_s[ix], tr_r[ix])
            loss = F.binary_cross_entropy_with_logits(logit, tr_r[ix].float())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            acc = ((model(te_s, te_r) > 0).long() == te_r).float().mean()
        print(f"epoch {epoch}: bce {np.mean(losses):.4f}, test accuracy {acc:.4f}")


if __name__ == "__main__":
    main()
