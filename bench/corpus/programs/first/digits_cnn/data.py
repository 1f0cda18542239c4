import numpy as np
import torch
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, Dataset


class RandomShift:
    """Moves the image by up to one pixel in each direction."""

    def __init__(self, max_shift=1):
        self.max_shift = max_shift

    def __call__(self, img):
        dy, dx = torch.randint(-self.max_shift, self.max_shift + 1, (2,)).tolist()
        return torch.roll(img, shifts=(dy, dx), dims=(1, 2))


class AddNoise:
    def __init__(self, sigma=0.05):
        self.sigma = sigma

    def __call__(self, img):
        return img + self.sigma * torch.randn_like(img)


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, img):
        for t in self.transforms:
            img = t(img)
        return img


class DigitsDataset(Dataset):
    def __init__(self, images, labels, transform=None):
        self.images = torch.from_numpy(images).float().unsqueeze(1)
        self.labels = torch.from_numpy(labels).long()
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, idx):
        img = self.images[idx]
        if self.transform is not None:
            img = self.transform(img)
        return img, self.labels[idx]


def get_loaders(batch_size, val_fraction=0.2, seed=0):
    digits = load_digits()
    images = digits.images / 16.0
    images = (images - 0.305) / 0.376

    rng = np.random.default_rng(seed)
    perm = rng.permutation(len(images))
    n_val = int(len(images) * val_fraction)
    val_idx, train_idx = perm[:n_val], perm[n_val:]

    train_set = DigitsDataset(
        images[train_idx],
        digits.target[train_idx],
        transform=Compose([RandomShift(1), AddNoise(0.05)]),
    )
    val_set = DigitsDataset(images[val_idx], digits.target[val_idx])

    train_loader = DataLoader(train_set, batch_size=batch_size, shuffle=True, drop_last=True)
    val_loader = DataLoader(val_set, batch_size=256, shuffle=False)
    return train_loader, val_loader
