import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

from corpus import make
from features import cmvn, logmel
from model import KWS


class Words(Dataset):
    def __init__(self, n, seed):
        self.waves, self.labels = make(n, seed)
        self.feats = [cmvn(logmel(w)) for w in self.waves]

    def __len__(self):
        return len(self.feats)

    def __getitem__(self, i):
        return self.feats[i], self.labels[i]


def main():
    torch.manual_seed(0)
    train, dev = Words(400, 1), Words(100, 2)
    net = KWS()
    opt = torch.optim.Adam(net.parameters(), 2e-3)
    for epoch in range(5):
        net.train()
        for x, y in DataLoader(train, 32, shuffle=True):
            loss = F.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        net.eval()
        with torch.no_grad():
            hits = sum((net(x).argmax(1) == y).sum().item() for x, y in DataLoader(dev, 50))
        print(f"epoch {epoch} loss {loss.item():.3f} dev acc {hits / len(dev):.3f}")
    torch.save(net.state_dict(), "/tmp/w3_kws.pt")


if __name__ == "__main__":
    main()
