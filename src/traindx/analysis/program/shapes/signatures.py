"""The signatures of the layers of torch.nn, and of functions that take the same options."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from functools import cache

from traindx.analysis.program.shapes.values import UNKNOWN, Value

_CONV = (
    "in_channels out_channels kernel_size stride=1 padding=0 dilation=1 groups=1 bias=True "
    "padding_mode='zeros'"
)
_DECONV = (
    "in_channels out_channels kernel_size stride=1 padding=0 output_padding=0 groups=1 bias=True "
    "dilation=1 padding_mode='zeros'"
)
_MAX = "kernel_size stride=None padding=0 dilation=1 return_indices=False ceil_mode=False"
_AVG = "kernel_size stride=None padding=0 ceil_mode=False count_include_pad=True"
_NORM = "num_features eps=1e-5 momentum=0.1 affine=True track_running_stats=True"
_RNN = (
    "input_size hidden_size num_layers=1 bias=True batch_first=False dropout=0.0 "
    "bidirectional=False proj_size=0"
)
_ENCODER = (
    "d_model nhead dim_feedforward=2048 dropout=0.1 activation='relu' layer_norm_eps=1e-5 "
    "batch_first=False norm_first=False"
)

SIGNATURES: dict[str, str] = {
    "Linear": "in_features out_features bias=True",
    "LazyLinear": "out_features bias=True",
    "Bilinear": "in1_features in2_features out_features bias=True",
    "Conv1d": _CONV,
    "Conv2d": _CONV,
    "Conv3d": _CONV,
    "ConvTranspose1d": _DECONV,
    "ConvTranspose2d": _DECONV,
    "ConvTranspose3d": _DECONV,
    "MaxPool1d": _MAX,
    "MaxPool2d": _MAX,
    "MaxPool3d": _MAX,
    "AvgPool1d": _AVG,
    "AvgPool2d": _AVG,
    "AvgPool3d": _AVG,
    "LPPool1d": "norm_type kernel_size stride=None ceil_mode=False",
    "LPPool2d": "norm_type kernel_size stride=None ceil_mode=False",
    "AdaptiveAvgPool1d": "output_size",
    "AdaptiveAvgPool2d": "output_size",
    "AdaptiveAvgPool3d": "output_size",
    "AdaptiveMaxPool1d": "output_size return_indices=False",
    "AdaptiveMaxPool2d": "output_size return_indices=False",
    "AdaptiveMaxPool3d": "output_size return_indices=False",
    "BatchNorm1d": _NORM,
    "BatchNorm2d": _NORM,
    "BatchNorm3d": _NORM,
    "SyncBatchNorm": _NORM,
    "InstanceNorm1d": "num_features eps=1e-5 momentum=0.1 affine=False track_running_stats=False",
    "InstanceNorm2d": "num_features eps=1e-5 momentum=0.1 affine=False track_running_stats=False",
    "InstanceNorm3d": "num_features eps=1e-5 momentum=0.1 affine=False track_running_stats=False",
    "LayerNorm": "normalized_shape eps=1e-5 elementwise_affine=True bias=True",
    "RMSNorm": "normalized_shape eps=None elementwise_affine=True",
    "GroupNorm": "num_groups num_channels eps=1e-5 affine=True",
    "LocalResponseNorm": "size alpha=0.0001 beta=0.75 k=1.0",
    "Flatten": "start_dim=1 end_dim=-1",
    "Unflatten": "dim unflattened_size",
    "Embedding": "num_embeddings embedding_dim padding_idx=None",
    "EmbeddingBag": "num_embeddings embedding_dim",
    "RNN": _RNN,
    "LSTM": _RNN,
    "GRU": _RNN,
    "RNNCell": "input_size hidden_size bias=True",
    "GRUCell": "input_size hidden_size bias=True",
    "LSTMCell": "input_size hidden_size bias=True",
    "MultiheadAttention": (
        "embed_dim num_heads dropout=0.0 bias=True add_bias_kv=False add_zero_attn=False "
        "kdim=None vdim=None batch_first=False"
    ),
    "TransformerEncoderLayer": _ENCODER,
    "TransformerDecoderLayer": _ENCODER,
    "TransformerEncoder": "encoder_layer num_layers norm=None",
    "TransformerDecoder": "decoder_layer num_layers norm=None",
    "Transformer": "d_model=512 nhead=8 num_encoder_layers=6 num_decoder_layers=6",
    "Upsample": "size=None scale_factor=None mode='nearest' align_corners=None",
    "UpsamplingNearest2d": "size=None scale_factor=None",
    "UpsamplingBilinear2d": "size=None scale_factor=None",
    "PixelShuffle": "upscale_factor",
    "PixelUnshuffle": "downscale_factor",
    "GLU": "dim=-1",
    "PReLU": "num_parameters=1",
    "ZeroPad1d": "padding",
    "ZeroPad2d": "padding",
    "ReflectionPad1d": "padding",
    "ReflectionPad2d": "padding",
    "ReplicationPad2d": "padding",
    "ConstantPad1d": "padding value",
    "ConstantPad2d": "padding value",
    "Unfold": "kernel_size dilation=1 padding=0 stride=1",
}

# layers whose output has the shape of their input
ALIKE = frozenset(
    {"ReLU", "ReLU6", "LeakyReLU", "PReLU", "ELU", "SELU", "CELU", "GELU", "SiLU", "Mish", "Tanh",
     "Sigmoid", "Softmax", "Softmax2d", "LogSoftmax", "Softplus", "Softsign", "Hardswish",
     "Hardsigmoid", "Hardtanh", "LogSigmoid", "Tanhshrink", "Softmin", "Threshold", "RReLU",
     "Hardshrink", "Softshrink", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout",
     "FeatureAlphaDropout", "Identity", "LocalResponseNorm"}
)  # fmt: skip

# functions that do what a layer does, with the same options after the input
AS_LAYER = {
    "max_pool1d": "MaxPool1d",
    "max_pool2d": "MaxPool2d",
    "max_pool3d": "MaxPool3d",
    "avg_pool1d": "AvgPool1d",
    "avg_pool2d": "AvgPool2d",
    "avg_pool3d": "AvgPool3d",
    "adaptive_avg_pool1d": "AdaptiveAvgPool1d",
    "adaptive_avg_pool2d": "AdaptiveAvgPool2d",
    "adaptive_avg_pool3d": "AdaptiveAvgPool3d",
    "adaptive_max_pool1d": "AdaptiveMaxPool1d",
    "adaptive_max_pool2d": "AdaptiveMaxPool2d",
    "adaptive_max_pool3d": "AdaptiveMaxPool3d",
    "interpolate": "Upsample",
    "upsample": "Upsample",
    "pixel_shuffle": "PixelShuffle",
    "pixel_unshuffle": "PixelUnshuffle",
    "glu": "GLU",
    "layer_norm": "LayerNorm",
    "unfold": "Unfold",
}


@cache
def parameters(kind: str) -> tuple[tuple[str, bool, object], ...]:
    """Return a layer's parameters in order: name, whether there is a default, the default."""
    found = []
    for part in SIGNATURES.get(kind, "").split():
        name, given, text = part.partition("=")
        found.append((name, bool(given), ast.literal_eval(text) if given else None))
    return tuple(found)


def options(kind: str, args: Sequence[Value], kwargs: Mapping[str, Value]) -> dict[str, Value]:
    """Bind the arguments of a layer's constructor; what is missing is unknown."""
    bound: dict[str, Value] = {}
    for position, (name, has_default, default) in enumerate(parameters(kind)):
        if position < len(args):
            bound[name] = args[position]
        elif name in kwargs:
            bound[name] = kwargs[name]
        else:
            bound[name] = default if has_default else UNKNOWN
    return bound
