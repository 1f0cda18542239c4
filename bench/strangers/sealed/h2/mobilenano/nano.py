from torch import nn

from blocks import ConvNormAct, InvertedResidual, round_channels


class MobileNano(nn.Module):
    # expand, channels, repeats, stride
    STAGES = [(1, 16, 1, 1), (3, 24, 2, 2), (3, 40, 1, 2)]

    def __init__(self, n_classes, width=1.0, stem=16, last=64):
        super().__init__()
        c = round_channels(stem, width)
        layers = [ConvNormAct(1, c)]
        for expand, channels, repeats, stride in self.STAGES:
            out = round_channels(channels, width)
            for i in range(repeats):
                layers.append(InvertedResidual(c, out, stride if i == 0 else 1, expand))
                c = out
        self.features = nn.Sequential(*layers)
        self.neck = ConvNormAct(int(channels * width), last, 1)
        self.classifier = nn.Sequential(nn.Dropout(0.1), nn.Linear(last, n_classes))

    def forward(self, x):
        x = self.neck(self.features(x))
        return self.classifier(x.mean((2, 3)))
