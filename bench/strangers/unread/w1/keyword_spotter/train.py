import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from network import Spotter, synth

KEYWORDS = ["yes", "no", "up", "down", "left", "right"]


def accuracy(net, loader):
    net.eval()
    good = seen = 0
    with torch.no_grad():
        for wave, label in loader:
            good += (net(wave).argmax(-1) == label).sum().item()
            seen += label.numel()
    net.train()
    return good / seen


def main(epochs=6, seed=11):
    torch.manual_seed(seed)
    g = torch.Generator().manual_seed(seed)
    train = TensorDataset(*synth(600, len(KEYWORDS), g))
    dev = TensorDataset(*synth(200, len(KEYWORDS), g))
    train_dl = DataLoader(train, batch_size=32, shuffle=True)
    dev_dl = DataLoader(dev, batch_size=100)

    net = Spotter(len(KEYWORDS))
    counts = torch.bincount(train.tensors[1], minlength=len(KEYWORDS)).float()
    criterion = nn.CrossEntropyLoss(weight=counts.sum() / (len(KEYWORDS) * counts))
    optim = torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=1e-5)

    for epoch in range(epochs):
        running = 0.0
        for wave, label in train_dl:
            out = net(wave)
            loss = criterion(out, label)
            optim.zero_grad()
            loss.backward()
            optim.step()
            running += loss.item() * label.numel()
        print(f"[{epoch}] loss={running / len(train):.3f} dev_acc={accuracy(net, dev_dl):.3f}")
    torch.save(net.state_dict(), "/tmp/spotter_w1.pt")


if __name__ == "__main__":
    main()
