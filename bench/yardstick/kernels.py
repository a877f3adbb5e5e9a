"""Rows of single operations, ours against PyTorch's: scaled dot-product and additive attention, the GRU encoder."""
import json
import random

from .measure import Claim, Contender, Row, Way, printed_by
from .workshop import BENCH

SHAPES = {"tiny": (4, 32), "base": (8, 64)}  # heads, d_k
SENTENCES = 256
PASSES = {"forward": "forward", "both": "forward and backward"}
ORDERS = {"mixed": "as they come", "sorted": "of like length"}


def lengths_of(language, shop, count):
    """Of the first sentences of Multi30k, in words with an end symbol."""
    return [len(line.split()) + 1 for line in shop.lines(f"train.{language}", count, "tok")]


def middle(ordered):
    """One of 20 batches sorted by length, as a trainer makes them: it costs PyTorch next to no padding."""
    count = len(ordered) // 20
    return sorted(ordered)[10 * count:11 * count]


def seconds_of(shop):
    return 0.1 if shop.quick else 1.0


def one_of(benchmarks):
    return json.loads(benchmarks)["benchmarks"][0]


# Scaled dot-product attention

def our_attention(shop, lengths, size, part):
    heads, width = SHAPES[size]
    program = shop.benchmark("attention_bench")
    command = shop.our_command("--lengths", lengths, "--threads", shop.threads,
                               f"--benchmark_filter=^ragged_{part}/heads:{heads}/d_k:{width}/",
                               f"--benchmark_min_time={seconds_of(shop)}", "--benchmark_format=json", program=program)
    return Way(f"{shop.threads} threads", command, lambda _: one_of(command.run())["tokens/s"])


def torch_attention(shop, lengths, size, part, *ways):
    return [torch_attention_way(shop, lengths, size, part, way) for way in ways]


def torch_attention_way(shop, lengths, size, part, way):
    heads, width = SHAPES[size]
    command = shop.peer_command(BENCH / "attention_torch.py", lengths, "--heads", heads, "--width", width, "--pass",
                                part, "--way", way, "--threads", shop.threads, "--seconds", seconds_of(shop))
    return printed_by(way, command)


def attention(size, order):
    def prepare(shop):
        lengths = (lengths_of("en", shop, SENTENCES) if order == "mixed" else
                   middle(lengths_of("en", shop, 20 * SENTENCES)))
        file = shop.file(f"lengths-{order}", map(str, lengths))
        contenders, claims = [], []
        for part, title in PASSES.items():
            arguments = shop, file, size, part
            contenders += [
                Contender.of(f"gloss, {title}", our_attention, *arguments),
                Contender.of(f"PyTorch padded, {title}", torch_attention, *arguments, "padded", "padded_additive"),
                Contender.of(f"PyTorch nested, {title}", torch_attention, *arguments, "nested")]
            peers = tuple(f"PyTorch {way}, {title}" for way in ("padded", "nested"))
            claims.append(Claim(title, (f"gloss, {title}",), peers, 1.5))
        return contenders, claims
    return prepare


# Additive attention

def additive(sentences):
    """Forward and backward, called once a time step, as training the recurrent model does, or with all queries."""
    def prepare(shop):
        pairs = list(zip(*(lengths_of(language, shop, 20 * sentences) for language in ("en", "de"))))
        file = shop.file(f"additive-{sentences}", (f"{source} {target}" for source, target in middle(pairs)))
        seconds = seconds_of(shop)

        def ours(calls):
            command = shop.our_command("--batch", file, "--threads", shop.threads, f"--benchmark_filter={calls}/",
                                       f"--benchmark_min_time={seconds}", "--benchmark_format=json",
                                       program=shop.benchmark("additive_bench"))
            return Way(f"{shop.threads} threads", command, lambda _: 1e3 / one_of(command.run())["real_time"])

        def theirs(calls):
            return [printed_by(way, shop.peer_command(BENCH / "additive_torch.py", file, "--calls", calls, "--way", way,
                                                      "--threads", shop.threads, "--seconds", seconds))
                    for way in ("eager", "compiled", "by_hand")]

        contenders, claims = [], []
        for calls, title in (("step", "a call a time step"), ("all", "all queries in one call")):
            contenders += [Contender.of(f"gloss, {title}", ours, calls),
                           Contender.of(f"PyTorch, {title}", theirs, calls)]
            claims.append(Claim(title, (f"gloss, {title}",), (f"PyTorch, {title}",), 1.5))
        return contenders, claims
    return prepare


# The bidirectional GRU encoder

def gru(order, batches=40, sentences=300, d_in=128, d_h=256):
    """Forward and backward on packed sequences, which hold no padding in PyTorch either. Three batches more than are
    counted; of like length, as trainers sort them, or as they come."""
    def prepare(shop):
        count = 4 if shop.quick else batches + 3
        lengths = lengths_of("en", shop, None)
        random.Random(17).shuffle(lengths)
        lengths = lengths[:count * sentences]
        if order == "sorted":
            lengths.sort()
        rows = [lengths[i:i + sentences] for i in range(0, len(lengths), sentences)]
        random.Random(19).shuffle(rows)
        file = shop.file(f"gru-{order}", (" ".join(map(str, row)) for row in rows))
        arguments, setting = (file, d_in, d_h, shop.threads), f"{shop.threads} threads"

        def ours():
            return printed_by(setting, shop.our_command(*arguments, program=shop.benchmark("gru_bench")))

        def theirs():
            return printed_by(setting, shop.peer_command(BENCH / "gru_torch.py", *arguments))

        return [Contender.of("gloss", ours), Contender.of("PyTorch", theirs)], [
            Claim("forward and backward", ("gloss",), ("PyTorch",), 1.5)]
    return prepare


ROWS = [
    *(Row(f"attention-{size}-{order}",
          f"scaled dot-product attention, {heads} heads of {width}, {SENTENCES} sentences {ORDERS[order]}", "tokens/s",
          attention(size, order)) for size, (heads, width) in SHAPES.items() for order in ORDERS),
    *(Row(f"additive-{sentences}", f"additive attention, {sentences} sentences of like length", "batches/s",
          additive(sentences)) for sentences in (64, 128, 256)),
    *(Row(f"gru-{order}", f"bidirectional GRU encoder, batches of 300 sentences {title}", "tokens/s", gru(order))
      for order, title in ORDERS.items())]
