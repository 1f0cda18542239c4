import torch
import torch.distributed as dist
import torch.nn.functional as F


class Engine:
    def __init__(self, model, optimizer, scheduler, cfg, device):
        self.model, self.optimizer, self.scheduler = model, optimizer, scheduler
        self.cfg, self.device = cfg, device
        self.is_main = dist.get_rank() == 0

    def _loss(self, batch):
        feats, flen, toks, tlen = (b.to(self.device, non_blocking=True) for b in batch)
        logp, olen = self.model(feats, flen)
        return F.ctc_loss(logp.transpose(0, 1), toks, olen, tlen, blank=0, zero_infinity=True)

    def train_epoch(self, loader, epoch):
        if hasattr(loader.sampler, "set_epoch"):
            loader.sampler.set_epoch(epoch)
        self.model.train()
        for i, batch in enumerate(loader):
            loss = self._loss(batch)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg["clip"])
            self.optimizer.step()
            self.scheduler.step()
            if self.is_main and i % self.cfg["log_every"] == 0:
                print(f"[{epoch}:{i}] ctc {loss.item():.3f}", flush=True)

    @torch.no_grad()
    def evaluate(self, loader):
        self.model.eval()
        acc = torch.zeros(2, device=self.device)
        for batch in loader:
            n = len(batch[1])
            acc += torch.tensor([self._loss(batch).item() * n, n], device=self.device)
        dist.all_reduce(acc)
        return (acc[0] / acc[1]).item()

    def fit(self, train_loader, dev_loader):
        for epoch in range(self.cfg["epochs"]):
            self.train_epoch(train_loader, epoch)
            dev = self.evaluate(dev_loader)
            if self.is_main:
                print(f"epoch {epoch} dev ctc {dev:.4f}", flush=True)
                torch.save(self.model.module.state_dict(), f"{self.cfg['out']}/e{epoch:03d}.pt")
            dist.barrier()
