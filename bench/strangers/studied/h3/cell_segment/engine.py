import torch
import torch.nn.functional as F


class Engine:
    def __init__(self, model, optimizer, device, classes):
        self.model, self.optimizer, self.device, self.classes = model, optimizer, device, classes

    def train_epoch(self, loader):
        self.model.train()
        total = torch.zeros((), device=self.device)
        for img, lab in loader:
            img, lab = img.to(self.device), lab.to(self.device)
            loss = F.cross_entropy(self.model(img), lab)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            total += loss.detach()
        return (total / len(loader)).item()

    @torch.inference_mode()
    def mean_iou(self, loader):
        self.model.eval()
        maps, labels = [], []
        for img, lab in loader:
            maps.append(self.model(img.to(self.device)).softmax(1))
            labels.append(lab.to(self.device))
        pred = torch.cat(maps).argmax(1)
        truth = torch.cat(labels)
        ious = []
        for c in range(self.classes):
            inter = ((pred == c) & (truth == c)).sum()
            union = ((pred == c) | (truth == c)).sum().clamp(min=1)
            ious.append(inter / union)
        return torch.stack(ious).mean().item()
