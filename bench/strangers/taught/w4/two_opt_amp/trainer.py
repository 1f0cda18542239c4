import contextlib

import torch
import torch.nn.functional as F


class TwoTowerTrainer:
    """Sparse and dense parameters have their own optimizers, one scaler serves both."""

    def __init__(self, model, device, accum=4, max_norm=1.0, log_every=50):
        self.model, self.device = model.to(device), torch.device(device)
        self.accum, self.max_norm, self.log_every = accum, max_norm, log_every
        self.opt_sparse = torch.optim.SparseAdam(list(model.sparse_parameters()), lr=5e-3)
        self.opt_dense = torch.optim.AdamW(model.dense_parameters(), lr=1e-3)
        amp = self.device.type == "cuda"
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=amp)
        self.ctx = torch.autocast("cuda", dtype=torch.float16) if amp else contextlib.nullcontext()
        self.updates = 0
        self.window = torch.zeros((), device=self.device)

    def loss(self, users, items):
        with self.ctx:
            u, v = self.model(users, items)
            logits = u @ v.t() / 0.1
        logits = logits.float()
        # another row may hold the same item, it is no negative then
        same = items[:, None] == items[None, :]
        same.fill_diagonal_(False)
        return F.cross_entropy(logits.masked_fill(same, -1e4), torch.arange(len(users), device=logits.device))

    def _update(self):
        # sparse gradients cannot be clipped by norm, only the dense part is
        self.scaler.unscale_(self.opt_dense)
        torch.nn.utils.clip_grad_norm_(self.model.dense_parameters(), self.max_norm)
        for opt in (self.opt_sparse, self.opt_dense):
            self.scaler.step(opt)
        self.scaler.update()
        for opt in (self.opt_sparse, self.opt_dense):
            opt.zero_grad(set_to_none=True)
        self.updates += 1

    def epoch(self, loader):
        self.model.train()
        usable = len(loader) // self.accum * self.accum
        for i, (users, items) in enumerate(loader):
            if i == usable:
                break
            users, items = users.to(self.device, non_blocking=True), items.to(self.device, non_blocking=True)
            loss = self.loss(users, items)
            self.scaler.scale(loss / self.accum).backward()
            self.window += loss.detach()
            if (i + 1) % self.accum == 0:
                self._update()
                if self.updates % self.log_every == 0:
                    print(f"update {self.updates} loss {self.window.item() / (self.log_every * self.accum):.4f}")
                    self.window.zero_()

    @torch.inference_mode()
    def recall(self, pairs, k=10):
        self.model.eval()
        catalog = self.model.item_vectors()
        hits = torch.zeros((), device=self.device)
        for users, items in pairs.split(256):
            top = (self.model.user_vectors(users) @ catalog.t()).topk(k, dim=1).indices
            hits += (top == items[:, None]).any(1).sum()
        return hits.item() / len(pairs)
