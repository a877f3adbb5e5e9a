"""Rows of growth: what a token costs far into a sentence, what a larger batch and a second thread bring. Ours alone."""
import dataclasses

from .measure import Claim, Contender, Row, Way
from .process import Session
from .training import gloss_training
from .translating import gloss_command, gloss_throughput, opus_work, tiny_work

NOISE = 0.97  # "never falls": by no more than this


def token_at(shop, work, position, reach):
    """Microseconds of a token around a position: the difference of two runs of forced lengths, so that encoding and
    all that stands before cancel. One sentence at a time, one thread, copies of one sentence."""
    few, many = (dataclasses.replace(work, pieces=position + side, batch=1) for side in (-reach, reach))
    commands = [gloss_command(shop, each, "float32", "--workers", 1) for each in (few, many)]

    def seconds(command):
        with Session(command) as session:
            session.translate(work.lines[:1])
            return session.translate(work.lines)

    def figure(_):
        short, long = map(seconds, commands)
        return 1e6 * (long - short) / (2 * reach * len(work.lines))

    return Way(f"positions {position - reach} to {position + reach}", commands[1], figure)


def positions(work_of, copies, wanted):
    def prepare(shop):
        work = dataclasses.replace(work_of(shop), beam=5, threads=1)
        work.lines = work.lines[:1] * (1 if shop.quick else copies)
        early, late = (("position 50", 50, 25), ("position 500", 500, 50))
        contenders = [Contender.of(name, token_at, shop, work, *where) for name, *where in (early, late)]
        return contenders, [Claim("a token at position 500, of one at 50", (late[0],), (early[0],), wanted)]
    return prepare


def by_batch(shop, work, sizes):
    return [Contender.of(f"batch {size}", gloss_throughput, shop, dataclasses.replace(work, batch=size),
                         setting=f"batch {size}") for size in sizes]


def batches(work_of, sizes):
    """Each batch size against the best of the smaller ones."""
    def prepare(shop):
        contenders = by_batch(shop, work_of(shop), sizes)
        names = [one.name for one in contenders]
        return contenders, [Claim(f"{name}, of the best smaller one", (name,), tuple(names[:i]), NOISE)
                            for i, name in enumerate(names) if i > 0]
    return prepare


def batch_saves(work_of, wanted):
    """Batch 64 against batch 1, greedily, where batch 1 has one row a step: one worker of one thread."""
    def prepare(shop):
        work = dataclasses.replace(work_of(shop), beam=1, threads=1)
        return by_batch(shop, work, (1, 64)), [Claim("batch 64 against batch 1", ("batch 64",), ("batch 1",), wanted)]
    return prepare


def threads(way_of):
    """`way_of(shop, threads)`; all threads against one."""
    def prepare(shop):
        one, many = "1 thread", f"{shop.threads} threads"
        contenders = [Contender.of(one, way_of, shop, 1), Contender.of(many, way_of, shop, shop.threads)]
        return contenders, [Claim(f"{many} against one", (many,), (one,), 0.9 * shop.threads)]
    return prepare


def translating(work_of):
    return threads(lambda shop, count: gloss_throughput(shop, dataclasses.replace(work_of(shop), threads=count),
                                                        setting=f"{count} threads"))


ROWS = [
    Row("positions-tiny", "a token at beam 5, `tiny`", "us",
        positions(lambda shop: tiny_work(shop, 5), 20, 1.6), "less"),
    Row("positions-opus", "a token at beam 5, OPUS-MT size", "us",
        positions(lambda shop: opus_work(shop, 1), 2, 1.2), "less"),
    Row("batches-tiny", "batch sizes, `tiny`, beam 5", "target tokens/s",
        batches(lambda shop: tiny_work(shop, 5), (1, 4, 16, 64, 256))),
    Row("batches-opus", "batch sizes, OPUS-MT size, beam 4, 24 tokens", "target tokens/s",
        batches(lambda shop: opus_work(shop, 256), (1, 4, 16, 64, 128))),
    Row("batch-64-tiny", "batch 64 against batch 1, `tiny`, greedy, one thread", "target tokens/s",
        batch_saves(lambda shop: tiny_work(shop, 1), 4)),
    Row("batch-64-opus", "batch 64 against batch 1, OPUS-MT size, greedy, one thread", "target tokens/s",
        batch_saves(lambda shop: opus_work(shop, 128), 4)),
    Row("threads-train", "training `tiny`, threads", "target tokens/s",
        threads(lambda shop, count: gloss_training(shop, "tiny", threads=count))),
    Row("threads-tiny", "translating with `tiny`, beam 5, threads", "target tokens/s",
        translating(lambda shop: tiny_work(shop, 5))),
    Row("threads-opus", "translating with OPUS-MT size, beam 4, 24 tokens, threads", "target tokens/s",
        translating(lambda shop: opus_work(shop, 192, batch=32))),
]
