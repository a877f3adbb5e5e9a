"""The bidirectional GRU encoder in PyTorch, forward and backward, on given batches: prints tokens a second.

    gru_torch.py BATCHES D_IN D_H THREADS

The counterpart of gru_bench.cc: packed sequences, made before the clock starts; gradients of the inputs and
of every parameter. Three batches go before the clock starts.
"""
import sys
import time

import torch
from torch.nn.utils.rnn import pack_sequence


def main(path, d_in, d_h, threads):
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    batches = [[int(n) for n in line.split()] for line in open(path, encoding="ascii")]
    unit = torch.nn.GRU(d_in, d_h, bidirectional=True)
    seconds, tokens = 0.0, 0
    for i, lengths in enumerate(batches):
        x = pack_sequence([torch.rand(n, d_in) * 2 - 1 for n in lengths], enforce_sorted=False)
        x.data.requires_grad_(True)
        up = torch.rand(sum(lengths), 2 * d_h) * 2 - 1
        unit.zero_grad(set_to_none=True)
        start = time.perf_counter()
        unit(x)[0].data.backward(up)
        if i < 3:
            continue
        seconds += time.perf_counter() - start
        tokens += sum(lengths)
    print(f"{tokens / seconds:.0f}")


main(sys.argv[1], *map(int, sys.argv[2:]))
