from traindx.analysis.program.training.claims import each_place, finding
from traindx.analysis.program.training.scrambled_axes import scrambled_reshapes
from traindx.examples import template
from traindx.registry import Findings, Run, detector


@detector(needs=("source",), suggests=("channel-mismatch", "shape-mismatch"))
def check(run: Run) -> Findings:
    """A reshape is given the sizes of a tensor in another order, which scrambles its numbers.

    ## What it detects
    A view or reshape to the sizes that the tensor has, in another order: images of rows, columns
    and channels reshaped to channels first; heads of attention joined without being moved back;
    the last state of both directions of an LSTM viewed as one row per example.

    ## Why it matters
    The shape is right, so nothing fails. But a reshape does not move numbers: every row now holds
    pieces of several rows, colours or examples, and the model learns from scrambled inputs.

    ## What to do
    `permute`, `transpose` or `np.transpose` to move an axis; then reshape, if sizes are merged.

    ## When it is wrong
    Where the order of the numbers has no meaning, as for noise; tensors that are drawn at random
    are left alone.
    """
    for found in each_place(run, scrambled_reshapes, at=lambda found: found.event.node):
        before, after = found.shapes
        yield finding(
            f"A reshape from {before} to {after} scrambles the numbers; a transpose is meant",
            (found.event, f"{before} becomes {after} without moving a number"),
            cause="channel-mismatch" if found.is_of_images else "shape-mismatch",
        )


_images = template("""
import cv2
import numpy as np

class Photos(torch.utils.data.Dataset):
    def __getitem__(self, i):
        image = cv2.imread(self.paths[i]).astype(np.float32) / 255
        height, width, colours = image.shape
        return torch.from_numpy({turned}), self.labels[i]
""")

_attention = template("""
class Attention(nn.Module):
    def __init__(self, width=64, heads=4):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        batch, time, width = x.shape
        q, k, v = self.project(x).chunk(3, dim=-1)
        q, k, v = (t.view(batch, time, self.heads, self.size).transpose(1, 2) for t in (q, k, v))
        mixed = torch.softmax(q @ k.transpose(-2, -1) / self.size ** 0.5, dim=-1) @ v
        return self.out({joined})

layer = Attention()
for x, y in loader:
    F.mse_loss(layer(x), y).backward()
""")

_states = template("""
class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(16, 32, batch_first=True, bidirectional=True)
        self.head = nn.Linear(64, 2)

    def forward(self, x):
        batch = x.size(0)
        _, (state, _) = self.lstm(x)
        return self.head({state})

net = Reader()
rows = torch.utils.data.TensorDataset(torch.randn(900, 12, 16), torch.zeros(900).long())
for x, y in torch.utils.data.DataLoader(rows, 30):
    F.cross_entropy(net(x), y).backward()
""")

FIRES = {
    "images with channels last": _images("image.reshape(colours, height, width)"),
    "states of two directions": _states("state.view(batch, -1)"),
    "heads that are joined where they stand": _attention("mixed.reshape(batch, time, width)"),
}

SILENT = {
    "near miss: images are turned": _images("image.transpose(2, 0, 1)"),
    "near miss: turned, then given their own sizes": _images(
        "image.transpose(2, 0, 1).reshape(colours, height, width)"
    ),
    "near miss: one channel is added": _images("image.reshape(1, height, width, colours)"),
    "near miss: heads are moved back": _attention(
        "mixed.transpose(1, 2).reshape(batch, time, width)"
    ),
    "near miss: states are moved first": _states("state.transpose(0, 1).reshape(batch, -1)"),
}
