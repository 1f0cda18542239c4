import torch


def random_view(img):
    """One random view: shift, contrast, noise, erased patch."""
    dy, dx = torch.randint(-1, 2, (2,)).tolist()
    img = torch.roll(img, (dy, dx), dims=(-2, -1))
    img = img * (0.7 + 0.6 * torch.rand(1))
    img = img + 0.1 * torch.randn_like(img)
    if torch.rand(1).item() < 0.5:
        top, left = torch.randint(0, 6, (2,)).tolist()
        img = img.clone()
        img[..., top : top + 2, left : left + 2] = 0
    return img


class TwoViews(torch.utils.data.Dataset):
    """Gives two augmented views of each image and no label."""

    def __init__(self, images):
        self.images = images

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        img = self.images[index]
        return random_view(img), random_view(img)
