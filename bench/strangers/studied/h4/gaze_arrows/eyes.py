import torch
from torch.utils.data import Dataset

GAZE = ["left", "right", "up", "down"]


def draw_eye(gaze, g):
    img = 0.35 * torch.randn(1, 14, 14, generator=g)
    img[0, 3:11, 2:12] += 0.8
    dy, dx = {"left": (0, -3), "right": (0, 3), "up": (-2, 0), "down": (2, 0)}[gaze]
    img[0, 6 + dy:8 + dy, 6 + dx:8 + dx] -= 1.6
    return img


class EyeCrops(Dataset):
    def __init__(self, n, seed, transform=None):
        g = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(0, len(GAZE), (n,), generator=g)
        self.images = [draw_eye(GAZE[k], g) for k in self.labels.tolist()]
        self.transform = transform

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        img = self.images[i]
        if self.transform is not None:
            img = self.transform(img)
        return img, self.labels[i]
