import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from layers import EtaNet
from trips import trips


class EtaTrainer:
    def __init__(self, net, lr, epochs):
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.net = net.to(self.device)
        self.opt = torch.optim.AdamW(net.parameters(), lr=lr)
        self.sched = torch.optim.lr_scheduler.CosineAnnealingLR(self.opt, epochs)
        self.scaler = torch.amp.GradScaler(self.device, init_scale=1024.0)
        self.epochs = epochs

    def predict(self, x):
        with torch.autocast(self.device, dtype=torch.float16):
            return self.net(x.to(self.device)).float()

    def fit(self, loader, test):
        for epoch in range(self.epochs):
            self.net.train()
            total = 0.0
            for x, y in loader:
                loss = nn.functional.l1_loss(self.predict(x), y.to(self.device))
                self.opt.zero_grad()
                self.scaler.scale(loss).backward()
                self.scaler.unscale_(self.opt)
                nn.utils.clip_grad_norm_(self.net.parameters(), 5.0)
                self.scaler.step(self.opt)
                self.scaler.update()
                total += loss.item()
            self.sched.step()
            print(f"epoch {epoch}: train MAE {5 * total / len(loader):.2f} min, test MAE {self.score(*test):.2f} min")

    @torch.no_grad()
    def score(self, x, y):
        self.net.eval()
        return 5 * (self.predict(x).cpu() - y).abs().mean().item()


if __name__ == "__main__":
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(*trips(3000, 0)), batch_size=50, shuffle=True)
    EtaTrainer(EtaNet(4), lr=4e-3, epochs=6).fit(loader, trips(800, 1))
