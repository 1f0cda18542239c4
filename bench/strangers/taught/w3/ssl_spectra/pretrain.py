import torch
import torch.nn.functional as F

from nets import SimCLR
from spectra import jitter, sample


def nt_xent(a, b, t=0.2):
    z = torch.cat([a, b])
    sim = z @ z.t() / t
    sim.fill_diagonal_(float("-inf"))
    n = len(a)
    target = torch.cat([torch.arange(n, 2 * n), torch.arange(n)])
    return F.cross_entropy(sim, target)


def main(epochs=6, bs=128):
    torch.manual_seed(0)
    x, _ = sample(1500, seed=1)
    model = SimCLR()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for ep in range(epochs):
        for idx in torch.randperm(len(x)).split(bs):
            xb = x[idx]
            loss = nt_xent(model(jitter(xb)), model(jitter(xb)))
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(f"pretrain {ep} loss {loss.item():.3f}")
    torch.save({"model": model.state_dict(), "epochs": epochs}, "/tmp/w3_simclr.pt")


if __name__ == "__main__":
    main()
