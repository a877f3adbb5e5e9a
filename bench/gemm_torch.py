#!/usr/bin/env python3
"""GFLOP/s of matrix products in PyTorch (float32): the best of large shapes. Usage: gemm_torch.py THREADS"""
import sys
import time

import torch

torch.set_num_threads(int(sys.argv[1]))
best = 0.0
for m, n, k in ((4096, 2048, 512), (4096, 512, 2048), (2048, 2048, 2048)):
    a, b = torch.randn(m, k), torch.randn(k, n)
    c = a @ b
    for _ in range(30):
        start = time.perf_counter()
        torch.mm(a, b, out=c)
        best = max(best, 2e-9 * m * n * k / (time.perf_counter() - start))
print(f"{best:.1f}")
