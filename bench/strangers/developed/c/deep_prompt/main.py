"""Deep prompt tuning of a frozen transformer encoder (Lightning)."""
import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset, random_split

VOCAB, LEN, DIM, DEPTH = 60, 20, 32, 3


def make_corpus(n=900):
    x = torch.randint(1, VOCAB, (n, LEN))
    y = ((x < 20).sum(1) > (x >= 40).sum(1)).long()
    return TensorDataset(x, y)


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, DIM)
        self.pos = nn.Parameter(torch.randn(LEN, DIM) * 0.02)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(DIM, 4, 64, dropout=0.1, batch_first=True, norm_first=True)
            for _ in range(DEPTH)
        )

    def embed(self, ids):
        return self.tok(ids) + self.pos

    def forward(self, ids):
        h = self.embed(ids)
        for layer in self.layers:
            h = layer(h)
        return h


def pretrain(backbone, steps=60):
    """A little masked-token modelling; id 0 is the mask token."""
    lm_head = nn.Linear(DIM, VOCAB)
    opt = torch.optim.Adam([*backbone.parameters(), *lm_head.parameters()], lr=1e-3)
    backbone.train()
    for _ in range(steps):
        ids = torch.randint(1, VOCAB, (32, LEN)).sort(dim=1).values
        hide = torch.rand(ids.shape) < 0.2
        logits = lm_head(backbone(ids.masked_fill(hide, 0)))
        loss = F.cross_entropy(logits[hide], ids[hide])
        opt.zero_grad()
        loss.backward()
        opt.step()
    return backbone


class PromptTuner(L.LightningModule):
    def __init__(self, backbone, n_prompt=4, lr=5e-3):
        super().__init__()
        self.save_hyperparameters(ignore=["backbone"])
        self.backbone = backbone
        for p in self.backbone.parameters():
            p.requires_grad_(False)
        self.prompts = [nn.Parameter(torch.randn(n_prompt, DIM) * 0.02) for _ in range(DEPTH)]
        self.norm = nn.LayerNorm(DIM)
        self.classifier = nn.Linear(DIM, 2)

    def forward(self, ids):
        h = self.backbone.embed(ids)
        b = h.size(0)
        for prompt, layer in zip(self.prompts, self.backbone.layers):
            p = prompt.to(h.device).unsqueeze(0).expand(b, -1, -1)
            h = layer(torch.cat([p, h], dim=1))
            out_p, h = h.split([p.size(1), h.size(1) - p.size(1)], dim=1)
        return self.classifier(self.norm(out_p.mean(1)))

    def training_step(self, batch, _):
        ids, y = batch
        loss = F.cross_entropy(self(ids), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, _):
        ids, y = batch
        logits = self(ids)
        self.log("val_acc", (logits.argmax(-1) == y).float().mean(), prog_bar=True)

    def configure_optimizers(self):
        trainable = [p for p in self.parameters() if p.requires_grad]
        opt = torch.optim.AdamW(trainable, lr=self.hparams.lr)
        return {"optimizer": opt, "lr_scheduler": torch.optim.lr_scheduler.CosineAnnealingLR(opt, 3)}


def main():
    L.seed_everything(11)
    train, val = random_split(make_corpus(), [700, 200], generator=torch.Generator().manual_seed(0))
    tuner = PromptTuner(pretrain(Backbone()))
    trainer = L.Trainer(
        max_epochs=3, accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
    )
    trainer.fit(tuner, DataLoader(train, 32, shuffle=True), DataLoader(val, 100))
    print({k: float(v) for k, v in trainer.callback_metrics.items()})


if __name__ == "__main__":
    main()
