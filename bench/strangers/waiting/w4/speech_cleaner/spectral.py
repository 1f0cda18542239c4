import numpy as np
from scipy.signal import stft


def log_spectrum(wave, n_fft=128, floor=1e-4):
    """wave: [batch, samples] -> log magnitude [batch, freq, frames]"""
    _, _, z = stft(wave, nperseg=n_fft, noverlap=n_fft * 3 // 4, axis=-1)
    return np.log(np.abs(z) + floor)


def lsd(a, b):
    """log spectral distance"""
    d = log_spectrum(a) - log_spectrum(b)
    return np.sqrt((d ** 2).mean(axis=1)).mean()
