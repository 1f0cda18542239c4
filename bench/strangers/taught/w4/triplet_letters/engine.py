import torch
import torch.nn.functional as F


class Embedder(torch.nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.body = torch.nn.Sequential(
            torch.nn.Conv2d(1, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
            torch.nn.Conv2d(16, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
            torch.nn.Flatten(), torch.nn.Linear(32 * 4, dim),
        )

    def forward(self, x):
        return F.normalize(self.body(x), dim=1)


@torch.inference_mode()
def embed_all(model, images, batch_size=256):
    was_training = model.training
    model.eval()
    out = torch.cat([model(b) for b in images.split(batch_size)])
    model.train(was_training)
    return out


@torch.no_grad()
def batch_hard_loss(model, images, labels, margin=0.3):
    """Batch-hard triplet loss (Hermans et al.) and the fraction of active triplets."""
    z = model(images)
    dist = torch.cdist(z, z)
    same = labels[:, None] == labels[None, :]
    hardest_pos = dist.masked_fill(~same, 0.0).amax(dim=1)
    hardest_neg = dist.masked_fill(same, float("inf")).amin(dim=1)
    per_anchor = F.relu(hardest_pos - hardest_neg + margin)
    return per_anchor.mean(), (per_anchor > 0).float().mean()


def recall_at_1(query, q_labels, gallery, g_labels):
    nearest = torch.cdist(query, gallery).argmin(dim=1)
    return (g_labels[nearest] == q_labels).float().mean().item()
