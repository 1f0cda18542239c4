import torch
import torch.nn.functional as F

from config import ExperimentConfig
from data import make_homes
from net import HomesNet, UncertaintyWeighting


def per_task(outputs, y):
    return {
        "price": F.mse_loss(outputs["price"], y[:, 0]),
        "rent": F.mse_loss(outputs["rent"], y[:, 1]),
        "sold_fast": F.binary_cross_entropy_with_logits(outputs["sold_fast"], y[:, 2]),
    }


@torch.no_grad()
def validate(net, loader, device):
    net.eval()
    sums, seen = {}, 0
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        for k, v in per_task(net(x), y).items():
            sums[k] = sums.get(k, 0.0) + v.item() * len(x)
        seen += len(x)
    return {k: v / seen for k, v in sums.items()}


def main(cfg):
    torch.manual_seed(cfg.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train_loader, val_loader = make_homes(cfg)
    net = HomesNet(cfg.n_features, cfg.hidden, cfg.tasks).to(device)
    weighting = UncertaintyWeighting(cfg.tasks).to(device)
    opt = torch.optim.Adam([
        {"params": net.parameters()},
        {"params": weighting.parameters(), "lr": cfg.lr * 3},
    ], lr=cfg.lr)

    for epoch in range(cfg.epochs):
        net.train()
        running = 0.0
        for x, y in train_loader:
            x, y = x.to(device), y.to(device)
            loss = weighting(per_task(net(x), y))
            opt.zero_grad()
            loss.backward()
            opt.step()
            running += loss.item()
        scores = validate(net, val_loader, device)
        text = " ".join(f"{k}={v:.3f}" for k, v in scores.items())
        print(f"epoch {epoch:02d} train {running / len(train_loader):.3f} | {text}")


if __name__ == "__main__":
    main(ExperimentConfig())
