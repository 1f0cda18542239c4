"""My Keras MLP-Mixer homework, ported to PyTorch."""
import numpy as np
import torch
from torch import nn

rng = np.random.RandomState(0)
torch.manual_seed(0)


def make_shapes(n, size=16):
    """squares, crosses and diagonals at random places"""
    imgs = 0.2 * rng.rand(n, 1, size, size)
    labels = rng.randint(0, 3, n)
    for img, lab in zip(imgs[:, 0], labels):
        r, c = rng.randint(1, size - 7, 2)
        if lab == 0:
            img[r:r + 6, c:c + 6] += 1
        elif lab == 1:
            img[r + 2:r + 4, c:c + 6] += 1
            img[r:r + 6, c + 2:c + 4] += 1
        else:
            img[np.arange(r, r + 6), np.arange(c, c + 6)] += 1
    return torch.tensor(imgs, dtype=torch.float32), torch.tensor(labels, dtype=torch.long)


class Patches(nn.Module):
    """same as tf.image.extract_patches with stride == size"""

    def __init__(self, patch_size):
        super().__init__()
        self.patch_size = patch_size

    def forward(self, images):
        p = self.patch_size
        b, c, h, w = images.shape
        tiles = images.unfold(2, p, p).unfold(3, p, p)
        return tiles.view(b, (h // p) * (w // p), c * p * p)


class MixerLayer(nn.Module):
    def __init__(self, num_patches, hidden_units):
        super().__init__()
        self.norm1 = nn.LayerNorm(hidden_units)
        self.norm2 = nn.LayerNorm(hidden_units)
        self.mlp_tokens = nn.Sequential(nn.Linear(num_patches, num_patches), nn.GELU(), nn.Linear(num_patches, num_patches))
        self.mlp_channels = nn.Sequential(nn.Linear(hidden_units, hidden_units), nn.GELU(), nn.Linear(hidden_units, hidden_units))

    def forward(self, x):
        x = x + self.mlp_tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.mlp_channels(self.norm2(x))


class Mixer(nn.Module):
    def __init__(self, image_size=16, patch_size=4, hidden_units=32, num_layers=2, num_classes=3):
        super().__init__()
        n = (image_size // patch_size) ** 2
        self.patches = Patches(patch_size)
        self.embed = nn.Linear(patch_size * patch_size, hidden_units)
        self.blocks = nn.Sequential(*[MixerLayer(n, hidden_units) for _ in range(num_layers)])
        self.head = nn.Linear(hidden_units, num_classes)

    def forward(self, images):
        x = self.blocks(self.embed(self.patches(images)))
        return self.head(x.mean(dim=1))


def fit(model, x, y, validation_data, epochs=6, batch_size=64):
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    loss_fn = nn.CrossEntropyLoss()
    history = {"loss": [], "val_accuracy": []}
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(x)).split(batch_size):
            optimizer.zero_grad()
            loss = loss_fn(model(x[idx]), y[idx])
            loss.backward()
            optimizer.step()
            total += loss.item() * len(idx)
        model.eval()
        with torch.no_grad():
            val = (model(validation_data[0]).argmax(1) == validation_data[1]).float().mean().item()
        history["loss"].append(total / len(x))
        history["val_accuracy"].append(val)
        print(f"Epoch {epoch + 1}/{epochs} - loss: {total / len(x):.4f} - val_accuracy: {val:.4f}")
    return history


x_train, y_train = make_shapes(900)
x_test, y_test = make_shapes(300)
model = Mixer()
print("parameters:", sum(p.numel() for p in model.parameters()))
fit(model, x_train, y_train, (x_test, y_test))
