"""Product embedder: two towers, in-batch negatives, mixed precision."""
import logging
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import nn

logging.basicConfig(level=logging.INFO, format="%(message)s")
logger = logging.getLogger(__name__)


@dataclass
class PrecisionConfig:
    dtype: torch.dtype = torch.float16
    loss_scale: float = 2.0 ** 20
    backoff: float = 0.5


@dataclass
class TrainConfig:
    steps: int = 200
    batch: int = 64
    lr: float = 0.2
    temperature: float = 0.1
    precision: PrecisionConfig = field(default_factory=PrecisionConfig)
    device: str = "cuda" if torch.cuda.is_available() else "cpu"


class Tower(nn.Module):
    def __init__(self, d_in: int, d_out: int = 24):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(d_in, 64), nn.ReLU(), nn.Linear(64, d_out))

    def forward(self, x):
        return F.normalize(self.body(x).float(), dim=-1)


class ClickLog:
    def __init__(self, seed: int = 0):
        self.gen = torch.Generator().manual_seed(seed)
        self.to_query = torch.randn(8, 20, generator=self.gen)
        self.to_item = torch.randn(8, 30, generator=self.gen)

    def draw(self, n: int):
        topic = torch.randn(n, 8, generator=self.gen)
        q = topic @ self.to_query + 0.5 * torch.randn(n, 20, generator=self.gen)
        i = topic @ self.to_item + 0.5 * torch.randn(n, 30, generator=self.gen)
        return q, i


class EmbedderTrainer:
    def __init__(self, cfg: TrainConfig):
        self.cfg = cfg
        self.query, self.item = Tower(20).to(cfg.device), Tower(30).to(cfg.device)
        params = [*self.query.parameters(), *self.item.parameters()]
        self.optimizer = torch.optim.SGD(params, lr=cfg.lr, momentum=0.9)
        self.scaler = torch.amp.GradScaler(
            cfg.device, init_scale=cfg.precision.loss_scale, backoff_factor=cfg.precision.backoff)

    def similarity(self, q, i):
        with torch.autocast(self.cfg.device, dtype=self.cfg.precision.dtype):
            return self.query(q) @ self.item(i).T

    def train_step(self, q, i) -> float:
        logits = self.similarity(q, i).float() / self.cfg.temperature
        loss = F.cross_entropy(logits, torch.arange(len(q), device=logits.device))
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update(self.cfg.precision.loss_scale)
        return loss.item()

    @torch.no_grad()
    def recall(self, q, i) -> float:
        return (self.similarity(q, i).argmax(1).cpu() == torch.arange(len(q))).float().mean().item()

    def fit(self, log: ClickLog):
        eval_q, eval_i = (t.to(self.cfg.device) for t in log.draw(200))
        for step in range(1, self.cfg.steps + 1):
            q, i = (t.to(self.cfg.device) for t in log.draw(self.cfg.batch))
            loss = self.train_step(q, i)
            if step % 40 == 0:
                logger.info("step %d loss %.4f recall@1 %.3f scale %.0f",
                            step, loss, self.recall(eval_q, eval_i), self.scaler.get_scale())


if __name__ == "__main__":
    torch.manual_seed(0)
    EmbedderTrainer(TrainConfig()).fit(ClickLog())
