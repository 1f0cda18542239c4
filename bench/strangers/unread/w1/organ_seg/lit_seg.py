import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class PhantomVolumes(Dataset):
    """Ellipsoids in noise; stands in for the CT crops."""

    def __init__(self, n, size=24, seed=0):
        self.n, self.size, self.seed = n, size, seed
        axis = torch.linspace(-1, 1, size)
        self.grid = torch.stack(torch.meshgrid(axis, axis, axis, indexing="ij"))

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed * 100_003 + i)
        mask = torch.zeros(self.size, self.size, self.size, dtype=torch.long)
        for organ in (1, 2):
            centre = torch.rand(3, generator=g) - 0.5
            radius = 0.25 + 0.25 * torch.rand(3, generator=g)
            d = ((self.grid - centre.view(3, 1, 1, 1)) / radius.view(3, 1, 1, 1)).square().sum(0)
            mask[d < 1] = organ
        image = mask.float() + 0.4 * torch.randn(mask.shape, generator=g)
        return image.unsqueeze(0), mask


def conv(i, o):
    return nn.Sequential(nn.Conv3d(i, o, 3, padding=1), nn.InstanceNorm3d(o, affine=True), nn.LeakyReLU(0.1))


class OrganSeg(L.LightningModule):
    def __init__(self, classes=3, width=8, lr=3e-3):
        super().__init__()
        self.save_hyperparameters()
        self.enc = conv(1, width)
        self.down = conv(width, 2 * width)
        self.dec = conv(3 * width, width)
        self.out = nn.Conv3d(width, classes, 1)
        self.collected = []

    def forward(self, x):
        a = self.enc(x)
        b = self.down(F.max_pool3d(a, 2))
        up = F.interpolate(b, scale_factor=2, mode="trilinear", align_corners=False)
        return self.out(self.dec(torch.cat([a, up], 1)))

    def training_step(self, batch, _):
        image, mask = batch
        loss = F.cross_entropy(self(image), mask)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, _):
        image, mask = batch
        logits = self(image)
        self.log("val_loss", F.cross_entropy(logits, mask), batch_size=len(image))
        self.collected.append((logits.softmax(1), mask))

    def on_validation_epoch_end(self):
        prob = torch.cat([p for p, _ in self.collected])
        mask = torch.cat([m for _, m in self.collected])
        hard = prob.argmax(1)
        for c in range(1, self.hparams.classes):
            p, t = hard == c, mask == c
            dice = 2 * (p & t).sum() / (p.sum() + t.sum()).clamp(min=1)
            self.log(f"dice_{c}", dice, prog_bar=True)
        self.collected.clear()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)


if __name__ == "__main__":
    L.seed_everything(12)
    train = DataLoader(PhantomVolumes(16, seed=1), batch_size=2, shuffle=True)
    val = DataLoader(PhantomVolumes(8, seed=2), batch_size=2)
    trainer = L.Trainer(max_epochs=2, accelerator="auto", devices=1, logger=False,
                        enable_checkpointing=False, enable_progress_bar=False)
    trainer.fit(OrganSeg(), train, val)
    print({k: round(v.item(), 3) for k, v in trainer.callback_metrics.items()})
