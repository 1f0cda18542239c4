import numpy as np, torch, torch.nn as nn
from sklearn.datasets import make_moons

T = 100
dev = "cuda" if torch.cuda.is_available() else "cpu"

class Sched:
    def __init__(s, T, b0=1e-4, b1=0.05):
        beta = np.linspace(b0, b1, T)
        alpha = 1 - beta
        abar = np.cumprod(alpha)
        s.T = T
        for k, v in dict(beta=beta, alpha=alpha, abar=abar).items():
            setattr(s, k, torch.from_numpy(v).to(dev))
    def noisy(s, x0, t, eps):
        a = s.abar[t][:, None]
        return a.sqrt() * x0 + (1 - a).sqrt() * eps

class Eps(nn.Module):
    def __init__(s, w=128, d=32):
        super().__init__()
        s.register_buffer("f", torch.exp(torch.linspace(0, 5, d // 2)))
        s.l1, s.l2, s.l3 = nn.Linear(2 + d, w), nn.Linear(w, w), nn.Linear(w, 2)
    def forward(s, x, t):
        u = (t.float() / T)[:, None] * s.f
        h = torch.cat([x, u.sin(), u.cos()], -1)
        h = nn.functional.silu(s.l1(h))
        h = h + nn.functional.silu(s.l2(h))
        return s.l3(h)

@torch.no_grad()
def sample(net, sc, n):
    net.eval()
    x = torch.randn(n, 2, device=dev)
    for i in reversed(range(sc.T)):
        t = torch.full((n,), i, device=dev)
        e = net(x, t)
        x = (x - sc.beta[i].item() / (1 - sc.abar[i].item()) ** 0.5 * e) / sc.alpha[i].item() ** 0.5
        if i:
            x = x + sc.beta[i].item() ** 0.5 * torch.randn_like(x)
    net.train()
    return x

if __name__ == "__main__":
    torch.manual_seed(0)
    x, _ = make_moons(4000, noise=0.05, random_state=0)
    x = torch.tensor((x - x.mean(0)) / x.std(0), dtype=torch.float32, device=dev)
    net, sc = Eps().to(dev), Sched(T)
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    for it in range(600):
        x0 = x[torch.randint(len(x), (256,), device=dev)]
        t = torch.randint(sc.T, (256,), device=dev)
        eps = torch.randn_like(x0)
        loss = (net(sc.noisy(x0, t, eps), t) - eps).pow(2).mean()
        opt.zero_grad(); loss.backward(); opt.step()
        if it % 200 == 199:
            s = sample(net, sc, 500)
            d = torch.cdist(s, x).min(1).values.mean()
            print(it + 1, f"{loss.item():.4f}", f"nn-dist {d.item():.4f}")
