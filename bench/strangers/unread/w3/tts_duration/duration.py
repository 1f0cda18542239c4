import torch
import torch.nn.functional as F
from torch import nn

from mixins import Configurable


class DurationPredictor(Configurable, nn.Module):
    def __init__(self, phones: int, dim: int = 32, kernel: int = 3, dropout: float = 0.1):
        super().__init__(phones=phones, dim=dim, kernel=kernel, dropout=dropout)
        self.embed = nn.Embedding(phones, dim, padding_idx=0)
        self.conv1 = nn.Conv1d(dim, dim, kernel, padding=kernel // 2)
        self.conv2 = nn.Conv1d(dim, dim, kernel, padding=kernel // 2)
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.drop = nn.Dropout(dropout)
        self.out = nn.Linear(dim, 1)

    def forward(self, ids):
        h = self.embed(ids)
        for conv, norm in ((self.conv1, self.norm1), (self.conv2, self.norm2)):
            h = self.drop(norm(F.relu(conv(h.transpose(1, 2)).transpose(1, 2))))
        return self.out(h).squeeze(-1)


def batch(n, gen, phones=30, max_len=25):
    lengths = torch.randint(8, max_len + 1, (n,), generator=gen)
    ids = torch.randint(1, phones, (n, max_len), generator=gen)
    mask = torch.arange(max_len)[None] < lengths[:, None]
    ids = ids * mask
    base = torch.linspace(1, 3, phones)[ids]
    prev = F.pad(base[:, :-1], (1, 0))
    log_dur = base - 0.3 * prev + 0.1 * torch.randn(n, max_len, generator=gen)
    return ids, mask, log_dur


def masked_mse(pred, target, mask):
    return ((pred - target) ** 2 * mask).sum() / mask.sum()


if __name__ == "__main__":
    torch.manual_seed(0)
    gen, val = torch.Generator().manual_seed(1), batch(200, torch.Generator().manual_seed(2))
    model = DurationPredictor(phones=30)
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for step in range(200):
        model.train()
        ids, mask, log_dur = batch(32, gen)
        loss = masked_mse(model(ids), log_dur, mask)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 50 == 49:
            model.eval()
            with torch.no_grad():
                print(step + 1, f"val mse {masked_mse(model(val[0]), val[2], val[1]).item():.4f}")
    print(model.to_json())
