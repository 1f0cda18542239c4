import logging

import torch
import torch.nn.functional as F

log = logging.getLogger("kws")


class Trainer:
    def __init__(self, model, train_loader, val_loader, *, lr=2e-3, epochs=5, device="cpu", use_amp=True):
        self.model = model.to(device)
        self.train_loader, self.val_loader = train_loader, val_loader
        self.device, self.use_amp, self.epochs = device, use_amp, epochs
        self.opt = torch.optim.Adam(self.model.parameters(), lr=lr)
        self.scaler = torch.amp.GradScaler(device, enabled=use_amp)

    def _autocast(self):
        return torch.autocast(self.device, dtype=torch.float16, enabled=self.use_amp)

    def train_one_epoch(self):
        self.model.train()
        total, count = 0.0, 0
        for wav, label in self.train_loader:
            wav, label = wav.to(self.device), label.to(self.device)
            self.opt.zero_grad(set_to_none=True)
            with self._autocast():
                loss = F.cross_entropy(self.model(wav), label)
            self.scaler.scale(loss).backward()
            self.scaler.step(self.opt)
            self.scaler.update()
            total += loss.item() * len(label)
            count += len(label)
        return total / count

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        hit = n = 0
        for wav, label in self.val_loader:
            with self._autocast():
                out = self.model(wav.to(self.device))
            hit += (out.argmax(1).cpu() == label).sum().item()
            n += len(label)
        return hit / n

    def fit(self):
        for e in range(self.epochs):
            tr = self.train_one_epoch()
            log.info("epoch %d loss %.4f val acc %.3f scale %g", e, tr, self.validate(), self.scaler.get_scale())
