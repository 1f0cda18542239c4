import torch
import torch.nn.functional as F


class Engine:
    """Mixed precision where there is a GPU, plain float32 elsewhere."""

    def __init__(self, net, lr, device):
        self.net, self.device = net.to(device), device
        self.amp = device.type == "cuda"
        self.scaler = torch.amp.GradScaler(device.type, enabled=self.amp)
        self.opt = torch.optim.AdamW(net.parameters(), lr=lr)

    def autocast(self):
        return torch.autocast(self.device.type, dtype=torch.float16, enabled=self.amp)

    def epoch(self, loader, objective):
        self.net.train()
        for x, y in loader:
            x, y = x.to(self.device), y.to(self.device)
            with self.autocast():
                loss = objective(self.net(x), x, y)
            self.opt.zero_grad(set_to_none=True)
            self.scaler.scale(loss).backward()
            self.scaler.unscale_(self.opt)
            torch.nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
            self.scaler.step(self.opt)
            self.scaler.update()

    @torch.no_grad()
    def accuracy(self, loader):
        self.net.eval()
        ok = sum((self.net(x.to(self.device)).argmax(1).cpu() == y).sum().item() for x, y in loader)
        return ok / len(loader.dataset)


def hard_labels(logits, x, y):
    return F.cross_entropy(logits.float(), y)


class Distil:
    def __init__(self, teacher, T, alpha):
        self.teacher, self.T, self.alpha = teacher.eval().requires_grad_(False), T, alpha

    def __call__(self, logits, x, y):
        logits = logits.float()
        with torch.no_grad():
            soft = F.log_softmax(self.teacher(x).float() / self.T, dim=1)
        kd = F.kl_div(F.log_softmax(logits / self.T, dim=1), soft, reduction="batchmean", log_target=True)
        return self.alpha * self.T ** 2 * kd + (1 - self.alpha) * F.cross_entropy(logits, y)
