import logging
import warnings

import lightning.pytorch as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


def synthetic(n, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 12, generator=g)
    cls = ((x[:, 0] * x[:, 1] + x[:, 2]) > 0).long()
    reg = x[:, 3:6].sum(1) + 0.5 * torch.sin(2 * x[:, 0]) + 0.1 * torch.randn(n, generator=g)
    return TensorDataset(x, cls, reg)


class MultiTask(pl.LightningModule):
    def __init__(self, tasks=("cls", "reg"), width=48, lr=4e-3):
        super().__init__()
        self.save_hyperparameters()
        self.trunk = nn.Sequential(nn.Linear(12, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.heads = nn.ModuleDict({
            "cls": nn.Linear(width, 2),
            "reg": nn.Linear(width, 1),
            "rank": nn.Linear(width, 1),
        })
        self.skipped = 0

    def _losses(self, batch):
        x, cls, reg = batch
        h = self.trunk(x)
        out = {}
        if "cls" in self.hparams.tasks:
            logits = self.heads["cls"](h)
            out["cls"] = nn.functional.cross_entropy(logits, cls)
            out["acc"] = (logits.argmax(1) == cls).float().mean()
        if "reg" in self.hparams.tasks:
            out["reg"] = nn.functional.mse_loss(self.heads["reg"](h).squeeze(1), reg)
        if "rank" in self.hparams.tasks:
            s = self.heads["rank"](h).squeeze(1)
            a, b = s.chunk(2)[0], s.chunk(2)[1][: len(s.chunk(2)[0])]
            sign = torch.sign(reg[: len(a)] - reg[len(a): len(a) + len(b)])
            out["rank"] = nn.functional.margin_ranking_loss(a, b, sign, margin=0.1)
        return out

    def training_step(self, batch, _):
        losses = self._losses(batch)
        return sum(losses[t] for t in self.hparams.tasks)

    def validation_step(self, batch, _):
        self.log_dict({f"val_{k}": v for k, v in self._losses(batch).items()})

    def gradients_ok(self):
        for p in self.parameters():
            if p.grad is None or not torch.isfinite(p.grad).all():
                return False
        return True

    def on_after_backward(self):
        # an occasional overflow on the cluster must not destroy a run
        if not self.gradients_ok():
            self.skipped += 1
            self.zero_grad()

    def on_validation_epoch_end(self):
        if not self.trainer.sanity_checking:
            m = self.trainer.callback_metrics
            print(f"epoch {self.current_epoch}  " + "  ".join(f"{k} {float(v):.4f}" for k, v in sorted(m.items())))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


def main():
    pl.seed_everything(1, verbose=False)
    module = MultiTask()
    trainer = pl.Trainer(max_epochs=5, accelerator="cpu", logger=False, enable_checkpointing=False,
                         enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(module, DataLoader(synthetic(1500, 0), batch_size=50, shuffle=True),
                DataLoader(synthetic(500, 1), batch_size=250))


if __name__ == "__main__":
    main()
