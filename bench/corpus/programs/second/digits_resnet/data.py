import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, Dataset


class RandomShift:
    """Pad by `pad` pixels and crop back at a random place (no flips: a mirrored 2 is not a 2)."""

    def __init__(self, pad=1):
        self.pad = pad

    def __call__(self, img):
        h, w = img.shape[-2:]
        img = F.pad(img, [self.pad] * 4)
        top = int(torch.randint(0, 2 * self.pad + 1, (1,)))
        left = int(torch.randint(0, 2 * self.pad + 1, (1,)))
        return img[:, top:top + h, left:left + w]


class Digits(Dataset):
    def __init__(self, images, labels, transform=None):
        self.images = torch.from_numpy(images).float().unsqueeze(1)
        self.labels = torch.from_numpy(labels).long()
        self.transform = transform

    def __len__(self):
        return self.images.shape[0]

    def __getitem__(self, i):
        x = self.images[i]
        if self.transform is not None:
            x = self.transform(x)
        return x, self.labels[i]


def get_loaders(batch_size):
    raw = load_digits()
    images, labels = raw.images / 16.0, raw.target
    perm = np.random.RandomState(1234).permutation(len(labels))
    images, labels = images[perm], labels[perm]
    n_test = 450
    tr_x, tr_y = images[n_test:], labels[n_test:]
    te_x, te_y = images[:n_test], labels[:n_test]
    mu, sigma = tr_x.mean(), tr_x.std()
    tr_x, te_x = (tr_x - mu) / sigma, (te_x - mu) / sigma

    train = DataLoader(Digits(tr_x, tr_y, RandomShift(1)), batch_size=batch_size, shuffle=True, drop_last=True)
    test = DataLoader(Digits(te_x, te_y), batch_size=225)
    return train, test
