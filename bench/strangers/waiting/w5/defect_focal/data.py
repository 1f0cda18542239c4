from collections import Counter
from pathlib import Path

from PIL import Image
from torch.utils.data import Dataset
from torchvision import transforms as T

CLASSES = ["ok", "scratch", "dent", "stain", "crack"]


class PartImages(Dataset):
    def __init__(self, root, train):
        self.files = sorted(p for c in CLASSES for p in (Path(root) / c).glob("*.png"))
        self.targets = [CLASSES.index(p.parent.name) for p in self.files]
        norm = T.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
        aug = [T.RandomResizedCrop(224, scale=(0.7, 1.0)), T.RandomHorizontalFlip(), T.ColorJitter(0.2, 0.2)]
        fixed = [T.Resize(256), T.CenterCrop(224)]
        self.tf = T.Compose((aug if train else fixed) + [T.ToTensor(), norm])

    def counts(self):
        c = Counter(self.targets)
        return [c[i] for i in range(len(CLASSES))]

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        return self.tf(Image.open(self.files[i]).convert("RGB")), self.targets[i]
