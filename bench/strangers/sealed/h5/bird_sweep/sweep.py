"""Which frame length is best for telling the four species apart?"""
import torch
from torch import nn

from features import load
from settings import Settings, Spectrum


def train(settings):
    feats, species = load(settings)
    x, y = torch.tensor(feats), torch.tensor(species)
    x = (x - x[:300].mean(0)) / (x[:300].std(0) + 1e-3)
    torch.manual_seed(settings.seed)
    net = nn.Sequential(nn.Linear(128, 32), nn.ReLU(), nn.Linear(32, 4))
    opt = torch.optim.AdamW(net.parameters(), lr=settings.lr, weight_decay=0.05)
    for epoch in range(settings.epochs):
        net.train()
        for idx in torch.randperm(300).split(30):
            loss = nn.functional.cross_entropy(net(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
    net.eval()
    with torch.no_grad():
        acc = (net(x[300:]).argmax(1) == y[300:]).float().mean().item()
    return loss.item(), acc


if __name__ == "__main__":
    results = {}
    for frame, keep in [(32, 12), (64, 24), (128, 48), (256, 96)]:
        s = Settings(spectrum=Spectrum(frame=frame, keep_low=keep))
        loss, acc = train(s)
        results[frame] = acc
        print(f"frame {frame:4d}  last loss {loss:.4f}  test acc {acc:.3f}")
    print("best frame length:", max(results, key=results.get))
