"""The choice of kernels, losses, lam and decoders."""
