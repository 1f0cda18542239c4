import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import make_moons
from sklearn.model_selection import train_test_split


class MixtureOfExperts(nn.Module):
    """p(y|x) = sum_k g_k(x) p_k(y|x), returned as a log-probability."""

    def __init__(self, d_in=2, experts=4, classes=2):
        super().__init__()
        self.gate = nn.Sequential(nn.Linear(d_in, 16), nn.Tanh(), nn.Linear(16, experts))
        self.experts = nn.ModuleList(nn.Linear(d_in, classes) for _ in range(experts))

    def forward(self, x):
        log_g = F.log_softmax(self.gate(x), dim=-1)
        log_p = torch.stack([F.log_softmax(e(x), dim=-1) for e in self.experts], dim=1)
        return torch.logsumexp(log_g.unsqueeze(-1) + log_p, dim=1), log_g


def main():
    torch.manual_seed(5)
    x, y = make_moons(900, noise=0.15, random_state=5)
    xa, xb, ya, yb = (torch.as_tensor(a) for a in train_test_split(x.astype("float32"), y, test_size=0.25, random_state=5))
    model = MixtureOfExperts()
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    nll = nn.NLLLoss()
    for epoch in range(25):
        model.train()
        for i in torch.randperm(len(ya)).split(45):
            log_prob, log_g = model(xa[i])
            usage = log_g.exp().mean(0)
            balance = (usage * torch.log(usage.clamp(min=1e-8))).sum()
            loss = nll(log_prob, ya[i]) + 0.2 * balance
            opt.zero_grad()
            loss.backward()
            opt.step()
        if epoch % 5 == 4:
            model.eval()
            with torch.no_grad():
                lp, lg = model(xb)
            print(f"epoch {epoch + 1} nll {nll(lp, yb).item():.4f} acc {(lp.argmax(1) == yb).float().mean().item():.3f} "
                  f"usage {[round(u, 2) for u in lg.exp().mean(0).tolist()]}")


if __name__ == "__main__":
    main()
