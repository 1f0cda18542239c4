from torch import nn, optim, no_grad, manual_seed, save
from torch.utils.data import DataLoader

from data import ShiftedGlyphs


def make_net():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.25), nn.Linear(32 * 16, 64), nn.ReLU(), nn.Linear(64, 10),
    )


class Session:
    def __init__(self, batch=64, lr=1e-3):
        manual_seed(5)
        self.train_dl = DataLoader(ShiftedGlyphs(train=True), batch, shuffle=True)
        self.val_dl = DataLoader(ShiftedGlyphs(train=False), 256)
        self.net = make_net()
        self.loss = nn.CrossEntropyLoss()
        self.opt = optim.Adam(self.net.parameters(), lr=lr)
        self.best = 0.0

    def train_epoch(self):
        self.net.train()
        for image, label in self.train_dl:
            self.opt.zero_grad()
            value = self.loss(self.net(image), label)
            value.backward()
            self.opt.step()
        return value.item()

    @no_grad()
    def val_epoch(self):
        self.net.eval()
        hits = sum((self.net(i).argmax(1) == l).sum().item() for i, l in self.val_dl)
        return hits / len(self.val_dl.dataset)

    def run(self, epochs):
        for e in range(epochs):
            loss, acc = self.train_epoch(), self.val_epoch()
            print(f"epoch {e}: loss {loss:.4f}, validation accuracy {acc:.4f}")
            if acc > self.best:
                self.best = acc
                save(self.net.state_dict(), "/tmp/glyphs_w1.pt")


if __name__ == "__main__":
    Session().run(5)
