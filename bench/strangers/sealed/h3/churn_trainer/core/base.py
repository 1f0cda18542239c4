import abc
import logging

import torch

logger = logging.getLogger("core")


class BaseTrainer(abc.ABC):
    max_grad_norm = 1.0

    def __init__(self, model, optimizer, scheduler=None, device=None):
        self.device = device or torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model = model.to(self.device)
        self.optimizer = optimizer
        self.scheduler = scheduler
        self.global_step = 0

    @abc.abstractmethod
    def loss(self, batch):
        ...

    @abc.abstractmethod
    def evaluate(self, loader):
        ...

    def _to_device(self, batch):
        return {k: v.to(self.device) for k, v in batch.items()}

    def _optimizer_step(self):
        norm = torch.nn.utils.clip_grad_norm_(self.optimizer.param_groups, self.max_grad_norm)
        self.optimizer.step()
        if self.scheduler is not None:
            self.scheduler.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.global_step += 1
        return norm

    def fit(self, train_loader, valid_loader, epochs):
        logger.info("start: %s", self.evaluate(valid_loader))
        for epoch in range(epochs):
            self.model.train()
            for batch in train_loader:
                loss = self.loss(self._to_device(batch))
                loss.backward()
                norm = self._optimizer_step()
                if self.global_step % 20 == 0:
                    logger.info("step %d loss %.4f grad norm %.3f", self.global_step, loss.item(), norm)
            logger.info("epoch %d: %s", epoch, self.evaluate(valid_loader))
