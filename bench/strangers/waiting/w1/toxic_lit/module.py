import lightning as L
import torch
import torch.nn.functional as F
from torch import nn


class TextTower(nn.Module):
    def __init__(self, vocab, dim=48):
        super().__init__()
        self.emb = nn.EmbeddingBag(vocab, dim, mode="mean")
        self.ff = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Dropout(0.1))

    def forward(self, ids):
        return self.ff(self.emb(ids))


class ToxicityModule(L.LightningModule):
    """Multi-label comment classifier; manual optimisation since the loss is
    computed in two passes (hard examples get an extra weight)."""

    def __init__(self, vocab=500, n_labels=4, lr=5e-3):
        super().__init__()
        self.save_hyperparameters()
        self.automatic_optimization = False
        self.tower = TextTower(vocab)
        self.head = nn.Linear(64, n_labels)

    def forward(self, ids):
        return self.head(self.tower(ids))

    def training_step(self, batch, batch_idx):
        opt = self.optimizers()
        ids, labels = batch
        logits = self(ids)
        per_item = F.binary_cross_entropy_with_logits(logits, labels, reduction="none").mean(1)
        with torch.no_grad():
            weight = torch.softmax(per_item, 0) * len(per_item)
        loss = (weight * per_item).mean()
        self.manual_backward(loss)
        self.clip_gradients(opt, gradient_clip_val=5.0, gradient_clip_algorithm="norm")
        opt.step()
        self.log("train_loss", per_item.mean(), prog_bar=True, on_epoch=True, on_step=False)

    def on_train_epoch_end(self):
        self.lr_schedulers().step()

    def validation_step(self, batch, batch_idx):
        ids, labels = batch
        logits = self(ids)
        self.log("val_loss", F.binary_cross_entropy_with_logits(logits, labels), prog_bar=True)
        self.log("val_acc", ((logits > 0) == labels.bool()).float().mean(), prog_bar=True)

    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters(), lr=self.hparams.lr)
        sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=self.trainer.max_epochs)
        return [opt], [sched]
