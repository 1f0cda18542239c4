import torch

SR, N_FFT, HOP, N_BANDS = 8000, 256, 128, 24


def band_matrix():
    # triangular bands, linear spacing is enough at 8 kHz
    centres = torch.linspace(0, N_FFT // 2, N_BANDS + 2)
    bins = torch.arange(N_FFT // 2 + 1).float()
    lo, mid, hi = centres[:-2, None], centres[1:-1, None], centres[2:, None]
    return torch.minimum((bins - lo) / (mid - lo), (hi - bins) / (hi - mid)).clamp(min=0)


BANDS = band_matrix()


def spectrogram(wave):
    spec = torch.stft(wave, N_FFT, HOP, window=torch.hann_window(N_FFT), return_complex=True).abs() ** 2
    return BANDS @ spec


def logmel(wave, eps=1e-10):
    return torch.log(spectrogram(wave) + eps)


def cmvn(feat):
    return (feat - feat.mean(-1, keepdim=True)) / (feat.std(-1, keepdim=True) + 1e-5)
