#!/usr/bin/env python3
"""bench/yardstick with contenders that are made up: turns, searches, verdicts, sessions, the page."""
import json
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
from yardstick import growth, kernels, report, training, translating  # noqa: E402
from yardstick.measure import Claim, Contender, Row, Way, judge, measure, spread  # noqa: E402
from yardstick.process import Command, Failed, Session, seconds_to_first_line  # noqa: E402

NOTHING = Command(("true",))


def contender(name, *figures, turns=None):
    """One way, which gives these figures one after another."""
    left = list(figures)

    def figure(_):
        if turns is not None:
            turns.append(name)
        return left.pop(0)

    return Contender(name, [Way("as it is", NOTHING, figure)])


def row(better="more"):
    return Row("row", "title", "units", None, better)


def verdict(claim, better="more", **figures):
    return judge(row(better), claim, {name: {"figures": values} for name, values in figures.items()})


def quiet(_):
    pass


class Verdicts(unittest.TestCase):
    def test_more_is_better(self):
        claim = Claim("what", ("ours",), ("theirs",), 1.5)
        self.assertTrue(verdict(claim, ours=[3, 3, 3], theirs=[2, 2, 2])["reached"])
        self.assertFalse(verdict(claim, ours=[2.9, 2.9, 2.9], theirs=[2, 2, 2])["reached"])
        self.assertFalse(verdict(claim, ours=[2, 2, 2], theirs=[3, 3, 3])["reached"])  # swapped
        self.assertFalse(verdict(claim, ours=[0, 0, 0], theirs=[2, 2, 2])["reached"])
        self.assertFalse(verdict(claim, ours=[float("nan")] * 3, theirs=[2, 2, 2])["reached"])

    def test_less_is_better(self):
        claim = Claim("what", ("ours",), ("theirs",), 0.5)
        self.assertTrue(verdict(claim, "less", ours=[1], theirs=[2])["reached"])
        self.assertFalse(verdict(claim, "less", ours=[1.1], theirs=[2])["reached"])
        self.assertFalse(verdict(claim, "less", ours=[float("nan")], theirs=[2])["reached"])

    def test_ratios_are_taken_round_by_round(self):
        values = verdict(Claim("what", ("ours",), ("theirs",)), ours=[2, 6, 12], theirs=[1, 2, 3])["values"]
        self.assertEqual(values, {"median": 3, "least": 2, "greatest": 4})

    def test_the_best_of_each_side(self):
        claim = Claim("what", ("a", "b"), ("c", "d"), 1)
        self.assertEqual(verdict(claim, a=[1], b=[4], c=[3], d=[2])["sides"], ["b", "c"])
        self.assertEqual(verdict(claim, "less", a=[1], b=[4], c=[3], d=[2])["sides"], ["a", "d"])
        self.assertEqual(verdict(claim, a=[1], b=[], c=[], d=[2])["sides"], ["a", "d"])

    def test_differences_go_both_ways(self):
        claim = Claim("what", ("int8",), ("float32",), 0.3, "difference")
        for difference, reached in ((0.25, True), (-0.25, True), (0.4, False), (-0.4, False), (float("nan"), False)):
            self.assertEqual(verdict(claim, int8=[32 + difference], float32=[32])["reached"], reached, difference)

    def test_no_verdict_without_a_side(self):
        claim = Claim("what", ("ours",), ("theirs",), 1)
        for figures in ({"ours": [], "theirs": [1]}, {"ours": [1], "theirs": []}):
            found = verdict(claim, **figures)
            self.assertNotIn("reached", found)
            self.assertEqual(report.verdict_text(found), "not measured")


class Turns(unittest.TestCase):
    def test_everyone_begins_a_round_in_turn(self):
        turns = []
        measure(row(), [contender(name, 1, 2, 3, turns=turns) for name in "abc"], 3, quiet)
        self.assertEqual("".join(turns), "abcbcacab")

    def test_the_best_setting_is_found_and_kept(self):
        def way(setting, short, full):
            return Way(setting, NOTHING, lambda is_short: short if is_short else full)

        ways = [way("slow", 10, 100), way("fast", 20, 200), way("middle", 15, 150)]
        self.assertEqual(measure(row(), [Contender("one", ways)], 2, quiet)["one"]["figures"], [200, 200])
        found = measure(row("less"), [Contender("one", ways)], 2, quiet)["one"]
        self.assertEqual((found["setting"], found["figures"]), ("slow", [100, 100]))

    def test_who_fails_is_left_out_and_says_why(self):
        def fail(_):
            raise Failed("it has no wheels")

        broken = Contender("broken", [Way("as it is", NOTHING, fail)])
        half = Contender("half", [Way("bad", NOTHING, fail), Way("good", NOTHING, lambda _: 7)])
        missing = Contender.of("missing", fail, None)
        found = measure(row(), [contender("whole", 1, 2), broken, half, missing], 2, quiet)
        self.assertEqual(found["whole"]["figures"], [1, 2])
        self.assertEqual(found["half"]["figures"], [7, 7])
        for name in ("broken", "missing"):
            self.assertEqual((found[name]["missing"], found[name]["figures"]), ("it has no wheels", []))


def python(program):
    return Command((sys.executable, "-c", program))


ECHO = python("import sys\nfor line in sys.stdin: print(line.upper(), end='', flush=True)")


class Programs(unittest.TestCase):
    def test_a_session_translates_more_than_a_pipe_holds(self):
        with Session(ECHO) as session:
            self.assertGreater(session.translate(["one", "", "two"]), 0)
            self.assertGreater(session.translate(["a long line " * 100] * 3000), 0)
            self.assertGreater(session.peak_megabytes(), 1)

    def test_a_session_that_ends_early_says_what_the_program_said(self):
        with self.assertRaisesRegex(Failed, "no such model"), Session(
                python("import sys\nprint(sys.stdin.readline(), flush=True)\nsys.exit('no such model')")) as session:
            session.translate(["one", "two", "three"])

    def test_the_first_line_is_waited_for(self):
        self.assertGreater(seconds_to_first_line(ECHO, "line"), 0)
        with self.assertRaisesRegex(Failed, "no such model"):
            seconds_to_first_line(python("raise SystemExit('no such model')"), "line")

    def test_a_command_that_fails(self):
        with self.assertRaisesRegex(Failed, "last words"):
            python("import sys\nprint('first', file=sys.stderr)\nsys.exit('last words')").run()
        with self.assertRaisesRegex(Failed, "status 3"):
            python("raise SystemExit(3)").run()
        self.assertEqual(Command(("echo", "a b"), {"X": "c d"}).run(), "a b\n")
        self.assertEqual(str(Command(("echo", "a b"), {"X": "c d"})), "X='c d' echo 'a b'")


class Logs(unittest.TestCase):
    def test_the_first_entry_of_a_training_is_left_out(self):
        entries = [{"seconds": 2, "target_tokens_per_second": 1}, {"seconds": 4, "target_tokens_per_second": 100},
                   {"seconds": 5, "valid_perplexity": 9}, {"seconds": 8, "target_tokens_per_second": 400}]
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder, "train.jsonl")
            log.write_text("".join(json.dumps(entry) + "\n" for entry in entries), encoding="utf-8")
            self.assertAlmostEqual(training.speed_of_log(log), (2 * 100 + 4 * 400) / 6)
            log.write_text(json.dumps(entries[0]), encoding="utf-8")
            with self.assertRaises(Failed):
                training.speed_of_log(log)


class Page(unittest.TestCase):
    def result(self, isa, ours):
        results = {name: {"name": name, "figures": figures, "setting": "batch 32", "command": f"run {name}",
                          "spread": spread(figures)} for name, figures in (("ours", ours), ("theirs", [1000, 2000]))}
        results["none"] = {"name": "none", "figures": [], "missing": "it has no wheels"}
        claims = [judge(row(), Claim("against theirs", ("ours",), ("theirs", "none"), 1.5), results)]
        return {"row": "row", "title": "a `title`", "unit": "tokens/s", "isa": isa, "date": "2026-12-01",
                "machine": "it", "threads": 2, "rounds": 2, "others": 0.01, "versions": "gloss 1",
                "contenders": results, "claims": claims}

    def test_the_newest_of_each_row_counts(self):
        with tempfile.TemporaryDirectory() as folder:
            results, page = pathlib.Path(folder, "results.jsonl"), pathlib.Path(folder, "docs", "page.md")
            for isa, ours in (("avx2", [4000, 8000]), ("native", [9, 9]), ("native", [1100, 2200])):
                report.append(results, self.result(isa, ours))
            report.write(page, results, [row()])
            text = page.read_text(encoding="utf-8")
        self.assertNotIn("9.00", text)
        for part in ("1,650 (1,100 to 2,200)", "1.10 (1.10 to 1.10) | ≥ 1.5 | **no** |",
                     "4.00 (4.00 to 4.00) | ≥ 1.5 | yes |", "run theirs", "not measured: it has no wheels",
                     "(#a-title-native)", "### a title, native"):
            self.assertIn(part, text)

    def test_numbers(self):
        for value, text in ((12345.6, "12,346"), (99.994, "99.99"), (1, "1.00"), (0.12345, "0.123"), (-0.25, "-0.25")):
            self.assertEqual(report.number(value), text)


class Rows(unittest.TestCase):
    def test_names_are_unique(self):
        names = [one.name for module in (training, translating, kernels, growth) for one in module.ROWS]
        self.assertEqual(len(names), len(set(names)))
        self.assertGreater(len(names), 20)


if __name__ == "__main__":
    unittest.main()
