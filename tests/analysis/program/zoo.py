"""Small modules in many styles, each with the input shapes it takes."""

from __future__ import annotations

HEAD = """
import math
from collections import OrderedDict
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn as nn
import torch.nn.functional as F

"""

ZOO: dict[str, tuple[str, tuple[tuple[int, ...], ...]]] = {
    "mlp": (
        """
class Net(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.fc1 = nn.Linear(784, width * 2)
        self.fc2 = nn.Linear(width * 2, width)
        self.out = nn.Linear(width, 10)

    def forward(self, x):
        x = x.view(x.size(0), -1)
        x = F.relu(self.fc1(x))
        x = torch.relu(self.fc2(x))
        return F.log_softmax(self.out(x), dim=1)
""",
        ((4, 1, 28, 28),),
    ),
    "lenet": (
        """
class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.conv1 = nn.Conv2d(3, 6, 5)
        self.pool = nn.MaxPool2d(2, 2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, x):
        x = self.pool(F.relu(self.conv1(x)))
        x = self.pool(F.relu(self.conv2(x)))
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return self.fc3(x)
""",
        ((4, 3, 32, 32),),
    ),
    "sequential": (
        """
class Net(nn.Module):
    def __init__(self, num_classes=7):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 16, kernel_size=3, stride=2, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(inplace=True),
            nn.Conv2d(16, 32, 3, padding="same", dilation=2),
            nn.GroupNorm(4, 32),
            nn.GELU(),
            nn.AvgPool2d(3, ceil_mode=True),
            nn.AdaptiveAvgPool2d((2, None)),
        )
        self.classifier = nn.Sequential(nn.Flatten(), nn.LazyLinear(64), nn.ReLU())
        self.out = nn.Linear(64, num_classes)

    def forward(self, x):
        return self.out(self.classifier(self.features(x)))
""",
        ((2, 3, 33, 40),),
    ),
    "built by a loop": (
        """
class Net(nn.Module):
    def __init__(self, sizes=(20, 64, 32, 8)):
        super().__init__()
        layers = []
        for i in range(len(sizes) - 1):
            layers.append(nn.Linear(sizes[i], sizes[i + 1]))
            if i < len(sizes) - 2:
                layers += [nn.BatchNorm1d(sizes[i + 1]), nn.ReLU()]
        self.net = nn.Sequential(*layers)

    def forward(self, x):
        return self.net(x)
""",
        ((5, 20),),
    ),
    "module list": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(16 * 2**i, 16 * 2 ** (i + 1)) for i in range(3)])
        self.norms = nn.ModuleList(nn.LayerNorm(16 * 2 ** (i + 1)) for i in range(3))
        self.heads = nn.ModuleDict({"a": nn.Linear(128, 3), "b": nn.Linear(128, 4)})

    def forward(self, x):
        for i, (layer, norm) in enumerate(zip(self.layers, self.norms)):
            x = norm(layer(x))
            if i > 0:
                x = x + self.layers[i](x[..., : self.layers[i].in_features])
        return torch.cat([head(x) for head in self.heads.values()], dim=-1)
""",
        ((3, 7, 16),),
    ),
    "residual": (
        """
class Block(nn.Module):
    expansion = 2

    def __init__(self, inp, out, stride=1, norm=nn.BatchNorm2d):
        super().__init__()
        self.conv1 = nn.Conv2d(inp, out, 3, stride, 1, bias=False)
        self.bn1 = norm(out)
        self.conv2 = nn.Conv2d(out, out * self.expansion, 3, padding=1)
        self.bn2 = norm(out * self.expansion)
        self.short = None
        if stride != 1 or inp != out * self.expansion:
            self.short = nn.Sequential(nn.Conv2d(inp, out * self.expansion, 1, stride))

    def forward(self, x):
        identity = x
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        if self.short is not None:
            identity = self.short(x)
        y += identity
        return F.relu(y)


class Net(nn.Module):
    def __init__(self, blocks=(1, 2)):
        super().__init__()
        self.inplanes = 8
        self.stem = nn.Conv2d(3, 8, 7, 2, 3)
        self.layer1 = self._make(8, blocks[0])
        self.layer2 = self._make(16, blocks[1], stride=2)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(16 * Block.expansion, 5)

    def _make(self, planes, count, stride=1):
        layers = [Block(self.inplanes, planes, stride)]
        self.inplanes = planes * Block.expansion
        for _ in range(1, count):
            layers.append(Block(self.inplanes, planes))
        return nn.Sequential(*layers)

    def forward(self, x):
        x = self.layer2(self.layer1(self.stem(x)))
        return self.fc(self.pool(x).flatten(1))
""",
        ((2, 3, 64, 64),),
    ),
    "unet": (
        """
class Double(nn.Sequential):
    def __init__(self, a, b):
        super().__init__(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU())


class Net(nn.Module):
    def __init__(self, c=8):
        super().__init__()
        self.d1 = Double(1, c)
        self.d2 = Double(c, 2 * c)
        self.up = nn.ConvTranspose2d(2 * c, c, 2, stride=2)
        self.u1 = Double(2 * c, c)
        self.out = nn.Conv2d(c, 2, 1)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(F.max_pool2d(a, 2))
        y = self.up(b)
        y = torch.cat((a, y), dim=1)
        return self.out(self.u1(y))
""",
        ((2, 1, 32, 48),),
    ),
    "autoencoder": (
        """
class Net(nn.Module):
    def __init__(self, latent=10):
        super().__init__()
        self.enc = nn.Sequential(
            nn.Conv2d(1, 8, 4, 2, 1), nn.ReLU(), nn.Conv2d(8, 16, 4, 2, 1), nn.ReLU(), nn.Flatten()
        )
        self.mu, self.logvar = nn.Linear(16 * 7 * 7, latent), nn.Linear(16 * 7 * 7, latent)
        self.fc = nn.Linear(latent, 16 * 7 * 7)
        self.dec = nn.Sequential(
            nn.Unflatten(1, (16, 7, 7)),
            nn.ConvTranspose2d(16, 8, 3, stride=2, padding=1, output_padding=1),
            nn.ReLU(),
            nn.ConvTranspose2d(8, 1, 4, 2, 1),
            nn.Sigmoid(),
        )

    def reparameterise(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        return mu + torch.randn_like(std) * std

    def forward(self, x):
        h = self.enc(x)
        mu, logvar = self.mu(h), self.logvar(h)
        z = self.reparameterise(mu, logvar)
        return self.dec(self.fc(z)), mu, logvar
""",
        ((3, 1, 28, 28),),
    ),
    "lstm": (
        """
class Net(nn.Module):
    def __init__(self, vocab=100, dim=12, hidden=16):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.rnn = nn.LSTM(dim, hidden, num_layers=2, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(2 * hidden, 3)

    def forward(self, tokens):
        x = self.emb(tokens)
        out, (h, c) = self.rnn(x)
        last = torch.cat([h[-2], h[-1]], dim=1)
        return self.fc(out[:, -1, :]) + self.fc(last) + self.fc(out.mean(dim=1))
""",
        ((4, 9),),
    ),
    "gru, time first": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(input_size=6, hidden_size=10)
        self.cell = nn.LSTMCell(10, 5)

    def forward(self, x):
        out, h = self.gru(x)
        hx, cx = self.cell(out[-1])
        return hx, h.squeeze(0), x.permute(1, 0, 2).contiguous().view(x.shape[1], -1)
""",
        ((7, 3, 6),),
    ),
    "attention by hand": (
        """
class Net(nn.Module):
    def __init__(self, dim=32, heads=4):
        super().__init__()
        assert dim % heads == 0
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x, mask=None):
        B, T, C = x.shape
        q, k, v = self.qkv(x).split(C, dim=2)
        q = q.view(B, T, self.heads, C // self.heads).transpose(1, 2)
        k = k.view(B, T, self.heads, C // self.heads).transpose(1, 2)
        v = v.view(B, T, self.heads, C // self.heads).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        if mask is not None:
            att = att.masked_fill(mask == 0, float("-inf"))
        att = F.softmax(att, dim=-1)
        y = (att @ v).transpose(1, 2).contiguous().view(B, T, C)
        return self.proj(y)
""",
        ((2, 5, 32),),
    ),
    "vit": (
        """
class Net(nn.Module):
    def __init__(self, image=32, patch=8, dim=24, depth=2, heads=4, classes=10):
        super().__init__()
        count = (image // patch) ** 2
        self.patch = nn.Conv2d(3, dim, kernel_size=patch, stride=patch)
        self.cls = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos = nn.Parameter(torch.randn(1, count + 1, dim))
        layer = nn.TransformerEncoderLayer(dim, heads, dim_feedforward=4 * dim, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=depth)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        cls = self.cls.expand(x.shape[0], -1, -1)
        x = torch.cat((cls, x), dim=1) + self.pos
        x = self.encoder(x)
        return self.head(self.norm(x[:, 0]))
""",
        ((2, 3, 32, 32),),
    ),
    "multihead": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.att = nn.MultiheadAttention(16, 4, batch_first=True)
        self.ff = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 16))
        self.n1, self.n2 = nn.LayerNorm(16), nn.LayerNorm((16,))

    def forward(self, x, memory):
        y, w = self.att(self.n1(x), memory, memory)
        x = x + y
        return x + self.ff(self.n2(x)), w
""",
        ((2, 5, 16), (2, 9, 16)),
    ),
    "gpt": (
        """
@dataclass
class Config:
    vocab: int = 50
    block: int = 16
    n_embd: int = 24
    n_layer: int = 2


class MLP(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.c_fc = nn.Linear(config.n_embd, 4 * config.n_embd)
        self.c_proj = nn.Linear(4 * config.n_embd, config.n_embd)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x)))


class Net(nn.Module):
    def __init__(self, config=Config(n_layer=3)):
        super().__init__()
        self.transformer = nn.ModuleDict(
            dict(
                wte=nn.Embedding(config.vocab, config.n_embd),
                wpe=nn.Embedding(config.block, config.n_embd),
                h=nn.ModuleList([MLP(config) for _ in range(config.n_layer)]),
            )
        )
        self.lm_head = nn.Linear(config.n_embd, config.vocab, bias=False)

    def forward(self, idx, targets=None):
        b, t = idx.size()
        pos = torch.arange(0, t, dtype=torch.long, device=idx.device)
        x = self.transformer["wte"](idx) + self.transformer["wpe"](pos)
        for block in self.transformer["h"]:
            x = x + block(x)
        logits = self.lm_head(x)
        if targets is None:
            loss = None
        else:
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))
        return logits, loss
""",
        ((2, 11),),
    ),
    "conv1d": (
        """
class Net(nn.Module):
    def __init__(self, channels=[4, 8, 16]):
        super().__init__()
        convs = []
        for a, b in zip(channels[:-1], channels[1:]):
            convs.append(nn.Conv1d(a, b, kernel_size=5, stride=2, padding=2, dilation=1))
            convs.append(nn.LeakyReLU(0.2))
        self.convs = nn.Sequential(*convs)
        self.bn = nn.BatchNorm1d(channels[-1])
        self.pool = nn.AdaptiveMaxPool1d(3)
        self.fc = nn.Linear(channels[-1] * 3, 2)

    def forward(self, x):
        x = self.bn(self.convs(x))
        x = self.pool(x).reshape(len(x), -1)
        return self.fc(x)
""",
        ((3, 4, 101),),
    ),
    "conv3d": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv3d(1, 4, (3, 5, 5), stride=(1, 2, 2), padding=(1, 2, 2))
        self.b = nn.BatchNorm3d(4)
        self.c = nn.MaxPool3d(2)
        self.d = nn.Conv3d(4, 8, 3, groups=2, padding="valid")
        self.e = nn.InstanceNorm3d(8, affine=True)

    def forward(self, x):
        x = self.e(self.d(self.c(self.b(self.a(x)))))
        return x.mean(dim=(2, 3, 4)), x.amax(-1, keepdim=True)
""",
        ((2, 1, 9, 33, 34),),
    ),
    "super resolution": (
        """
class Net(nn.Module):
    def __init__(self, factor=3):
        super().__init__()
        self.conv = nn.Conv2d(1, factor**2, 3, padding=1)
        self.shuffle = nn.PixelShuffle(factor)
        self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)
        self.pad = nn.ReflectionPad2d((1, 2, 3, 4))

    def forward(self, x):
        y = self.shuffle(self.conv(x))
        base = F.interpolate(x, size=y.shape[-2:], mode="nearest")
        return self.pad(self.up(y + base)), F.interpolate(x, scale_factor=0.5)
""",
        ((1, 1, 10, 12),),
    ),
    "squeeze and excite": (
        """
class Net(nn.Module):
    def __init__(self, c=12, r=4):
        super().__init__()
        self.fc = nn.Sequential(nn.Linear(c, c // r), nn.ReLU(), nn.Linear(c // r, c), nn.Sigmoid())
        self.dw = nn.Conv2d(c, c, 3, groups=c)

    def forward(self, x):
        b, c, _, _ = x.size()
        w = F.adaptive_avg_pool2d(x, 1).view(b, c)
        w = self.fc(w)[:, :, None, None]
        x = x * w.expand_as(x)
        return self.dw(x), x[:, ::3, 1:-1, :4].unsqueeze(1), x.sum(1).argmax(-1)
""",
        ((2, 12, 9, 9),),
    ),
    "bilinear, einsum, stack": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.bi = nn.Bilinear(6, 4, 5)
        self.w = nn.Parameter(torch.randn(5, 3))
        self.register_buffer("scale", torch.ones(3))

    def forward(self, a, b):
        y = self.bi(a, b)
        z = torch.einsum("bi,ij->bj", y, self.w) * self.scale
        s = torch.stack([z, z.clone(), z], dim=1)
        p = torch.bmm(s, s.transpose(1, 2))
        parts = torch.chunk(p, 2, dim=-1)
        return s, p, parts[0], parts[1], F.linear(z, self.w), torch.where(z > 0, z, -z)
""",
        ((7, 6), (7, 4)),
    ),
    "return indices": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = nn.MaxPool2d(2, stride=2, return_indices=True, ceil_mode=True)

    def forward(self, x):
        y, idx = self.pool(x)
        v, i = y.max(dim=1)
        t = y.flatten(2).topk(3, dim=-1)[0]
        return y, idx, v, t, F.pad(y, (1, 1, 2, 0)), F.one_hot(i, 9)
""",
        ((2, 3, 7, 9),),
    ),
    "ordered dict": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            OrderedDict([("c", nn.Conv2d(3, 5, 3)), ("r", nn.ReLU()), ("p", nn.MaxPool2d(2))])
        )
        norm = partial(nn.LayerNorm, eps=1e-6)
        self.norm = norm(5)
        act = {"relu": nn.ReLU, "gelu": nn.GELU}
        self.act = act["gelu"]()

    def forward(self, x):
        x = self.net(x)
        x = self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        return self.act(x).flatten(start_dim=1), x.transpose(1, -1), x.squeeze(), x.repeat(1, 2, 1, 1)
""",
        ((2, 3, 12, 12),),
    ),
    "training branch": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 16)
        self.aux = nn.Linear(16, 3)
        self.b = nn.Linear(16, 3)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        h = self.a(x)
        if self.training:
            h = self.drop(h)
            extra = self.aux(h)
        out = self.b(h)
        try:
            h = h * 2
        except RuntimeError:
            pass
        return out
""",
        ((4, 8),),
    ),
    "submodule and helper function": (
        """
WIDTH = 16


def conv_block(a, b, pool=True):
    layers = [nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(inplace=True)]
    if pool:
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers)


class Base(nn.Module):
    def num_flat_features(self, x):
        size = x.size()[1:]
        num = 1
        for s in size:
            num *= s
        return num


class Net(Base):
    def __init__(self, in_channels=3):
        super().__init__()
        self.c1 = conv_block(in_channels, WIDTH)
        self.c2 = conv_block(WIDTH, 2 * WIDTH, pool=False)
        self.res = nn.Sequential(conv_block(2 * WIDTH, 2 * WIDTH, pool=False))
        self.fc = nn.Linear(2 * WIDTH * 8 * 8, 10)

    def forward(self, xb):
        out = self.c2(self.c1(xb))
        out = self.res(out) + out
        out = out.view(-1, self.num_flat_features(out))
        return self.fc(out)
""",
        ((2, 3, 16, 16),),
    ),
    "dense": (
        """
class Layer(nn.Module):
    def __init__(self, a, growth):
        super().__init__()
        self.bn = nn.BatchNorm2d(a)
        self.conv = nn.Conv2d(a, growth, 3, padding=1)

    def forward(self, x):
        return torch.cat([x, self.conv(F.relu(self.bn(x)))], 1)


class Net(nn.Module):
    def __init__(self, growth=4, count=3):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3)
        block = nn.Sequential()
        for i in range(count):
            block.add_module("layer%d" % i, Layer(8 + i * growth, growth))
        self.block = block
        self.cls = nn.Conv2d(8 + count * growth, 10, kernel_size=1)

    def forward(self, x):
        x = self.cls(self.block(self.stem(x)))
        return x.mean([2, 3])
""",
        ((2, 3, 10, 10),),
    ),
    "text cnn": (
        """
class Net(nn.Module):
    def __init__(self, vocab=60, dim=16, kernels=(2, 3, 4), out=8):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim, padding_idx=0)
        self.convs = nn.ModuleList([nn.Conv2d(1, out, (k, dim)) for k in kernels])
        self.fc = nn.Linear(len(kernels) * out, 2)

    def forward(self, x):
        x = self.emb(x).unsqueeze(1)
        xs = [F.relu(conv(x)).squeeze(3) for conv in self.convs]
        xs = [F.max_pool1d(i, i.size(2)).squeeze(2) for i in xs]
        return self.fc(torch.cat(xs, 1))
""",
        ((3, 12),),
    ),
    "generator": (
        """
class Net(nn.Module):
    def __init__(self, nz=16, ngf=4, nc=3):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(nz, ngf * 4, 4, 1, 0, bias=False),
            nn.BatchNorm2d(ngf * 4),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 4, nc, 4, 2, 1, bias=False),
            nn.Tanh(),
        )

    def forward(self, z):
        return self.main(z[:, :, None, None])
""",
        ((2, 16),),
    ),
    "scaled dot product": (
        """
class Net(nn.Module):
    def __init__(self, dim=16, heads=2):
        super().__init__()
        self.heads, self.head_dim = heads, dim // heads
        self.q, self.kv = nn.Linear(dim, dim), nn.Linear(dim, dim * 2)

    def split_heads(self, t):
        return t.reshape(*t.shape[:-1], self.heads, self.head_dim).permute(0, 2, 1, 3)

    def forward(self, x, context):
        k, v = map(self.split_heads, self.kv(context).chunk(2, dim=-1))
        o = F.scaled_dot_product_attention(self.split_heads(self.q(x)), k, v)
        o = o.transpose(1, 2).flatten(-2)
        return o, F.glu(o), o.unflatten(-1, (2, -1)), o.roll(1, 1).cumsum(1)
""",
        ((2, 5, 16), (2, 7, 16)),
    ),
    "global shapes": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(3, 6, 3, stride=2)
        self.b = nn.Conv2d(6, 6, 1)

    def forward(self, x):
        n, c, h, w = (y := self.a(x)).shape
        z = y.reshape(n, c, h * w).permute(0, 2, 1)
        attention = torch.softmax(z @ z.mT / c**0.5, -1)
        z = (attention @ z).transpose(1, 2).reshape(n, c, h, w)
        flat = self.b(z).flatten(1)
        grid = torch.stack(torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij"))
        return flat, z.std(dim=1), z.norm(dim=1), torch.full((n, 2), 0.5), z.view(n, 2, 3, h, -1)
""",
        ((2, 3, 15, 11),),
    ),
}
