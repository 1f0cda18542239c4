from typing import List

import torch


class Callback:
    def on_fit_start(self, engine): ...
    def on_epoch_start(self, engine): ...
    def on_batch_start(self, engine): ...
    def on_batch_end(self, engine): ...
    def on_epoch_end(self, engine): ...


class Engine:
    """Minimal training engine used by all of the group's speech recipes."""

    def __init__(self, model, optimizer, criterion, callbacks: List[Callback] = (), device="cpu"):
        self.model = model.to(device)
        self.optimizer = optimizer
        self.criterion = criterion
        self.callbacks = list(callbacks)
        self.device = device
        self.global_step = 0
        self.loss = None

    def _call(self, hook):
        for cb in self.callbacks:
            getattr(cb, hook)(self)

    def fit(self, loader, epochs):
        self._call("on_fit_start")
        for self.epoch in range(epochs):
            self.model.train()
            self._call("on_epoch_start")
            for feats, feat_lens, tokens, token_lens in loader:
                self._call("on_batch_start")
                feats, tokens = feats.to(self.device), tokens.to(self.device)
                log_probs, out_lens = self.model(feats, feat_lens)
                self.loss = self.criterion(log_probs.transpose(0, 1), tokens, out_lens, token_lens)
                self.optimizer.zero_grad()
                self.loss.backward()
                self.optimizer.step()
                self.global_step += 1
                self._call("on_batch_end")
            self._call("on_epoch_end")
