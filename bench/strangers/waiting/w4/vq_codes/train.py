import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

from vq import RoundThrough, VectorQuantizer


class Compressor(nn.Module):
    def __init__(self, codes=32, dim=8, slots=4):
        super().__init__()
        self.slots, self.dim = slots, dim
        self.enc = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, slots * dim))
        self.vq = VectorQuantizer(codes, dim)
        self.gain = nn.Linear(64, 1)
        self.dec = nn.Sequential(nn.Linear(slots * dim + 1, 96), nn.ReLU(), nn.Linear(96, 64))

    def forward(self, x):
        z = self.enc(x).view(-1, self.dim)
        zq, commit, idx = self.vq(z)
        # brightness is sent as a 4 bit number
        g = RoundThrough.apply(self.gain(x) * 4, 0, 15) / 15
        y = self.dec(torch.cat([zq.view(len(x), -1), g], dim=1))
        return y, commit, idx


def main():
    torch.manual_seed(0)
    x = torch.tensor(load_digits().data / 16.0, dtype=torch.float32)
    train, test = x[:1500], x[1500:]
    loader = DataLoader(TensorDataset(train), batch_size=64, shuffle=True)
    net = Compressor()
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)

    for epoch in range(20):
        net.train()
        for (xb,) in loader:
            y, commit, _ = net(xb)
            loss = F.mse_loss(y, xb) + commit
            opt.zero_grad()
            loss.backward()
            opt.step()
        if epoch % 4 == 3:
            net.eval()
            with torch.inference_mode():
                y, _, idx = net(test)
            print(f"epoch {epoch + 1} test mse {F.mse_loss(y, test).item():.4f} codes used {idx.unique().numel()}")


if __name__ == "__main__":
    main()
