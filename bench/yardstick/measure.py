"""A row of the yardstick: contenders that do the same work in turns, and what their figures should be to each other."""
import dataclasses
import statistics
from collections.abc import Callable

from .process import Command, Failed


@dataclasses.dataclass
class Way:
    """One setting of a contender. `figure(short)` does the work once and gives the row's quantity; `short` does less of
    it, for the search of the best setting."""
    setting: str
    command: Command
    figure: Callable[[bool], float]


def printed_by(setting, command):
    """The way of a command that prints its figure, whatever it is asked."""
    return Way(setting, command, lambda _: float(command.run()))


@dataclasses.dataclass
class Contender:
    """With several ways the best of a short search is the one that is measured."""
    name: str
    ways: list
    missing: str = ""  # why there is nothing to measure

    @classmethod
    def of(cls, name, prepare, *arguments, **keywords):
        """A contender whose ways prepare(*arguments, **keywords) returns, or its only one; what that says when it has
        Failed is why there are none."""
        try:
            ways = prepare(*arguments, **keywords)
            return cls(name, ways if isinstance(ways, list) else [ways])
        except Failed as reason:
            return cls(name, [], str(reason))


@dataclasses.dataclass
class Claim:
    """The best of `of` against the best of `against`: their ratio round by round, at least `wanted` where more is
    better and at most where less is. A difference instead of a ratio may be as much as `wanted` in either direction."""
    what: str
    of: tuple
    against: tuple
    wanted: float | None = None
    compare: str = "ratio"


@dataclasses.dataclass
class Row:
    name: str
    title: str
    unit: str
    prepare: Callable  # of a Workshop: (contenders, claims)
    better: str = "more"
    rounds: int | None = None  # where repeating says nothing

    def best(self, items, key):
        return (max if self.better == "more" else min)(items, key=key)


def number(value):
    """For people: 12,345, 678, 12.34, 0.123."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 1 else f"{value:.2f}"


def spread(values):
    return {"median": statistics.median(values), "least": min(values), "greatest": max(values)}


def _search(row, contender, say):
    """The best way of a contender, the ways that do not run left out."""
    if len(contender.ways) == 1:
        return contender.ways[0], {}
    tried, reasons = {}, []
    for way in contender.ways:
        try:
            tried[way.setting] = way.figure(True)
        except Failed as reason:
            reasons.append(f"{way.setting}: {reason}")
            continue
        say(f"  search, {contender.name}, {way.setting}: {number(tried[way.setting])} {row.unit}")
    for reason in reasons:
        say(f"  {contender.name}, {reason}")
    if not tried:
        raise Failed("; ".join(reasons))
    setting = row.best(tried, key=tried.get)
    return next(way for way in contender.ways if way.setting == setting), tried


def measure(row, contenders, rounds, say):
    """A dictionary a contender: its setting, command, what the search tried, and its figures, or why it has none."""
    results, chosen = {}, {}
    for contender in contenders:
        result = results[contender.name] = {"name": contender.name, "figures": []}
        try:
            if contender.missing:
                raise Failed(contender.missing)
            chosen[contender.name], result["tried"] = _search(row, contender, say)
            result["setting"] = chosen[contender.name].setting
            result["command"] = chosen[contender.name].command
        except Failed as reason:
            result["missing"] = str(reason)
            say(f"  {contender.name}: {reason}")
    names = list(chosen)
    for turn in range(rounds):
        # Another one begins each time, so that none always runs on what the same one left behind.
        for name in names[turn % len(names):] + names[:turn % len(names)] if names else []:
            result = results[name]
            if "missing" in result:
                continue
            try:
                result["figures"].append(chosen[name].figure(False))
            except Failed as reason:
                result["missing"], result["figures"] = str(reason), []
                say(f"  {name}: {reason}")
        say(f"  round {turn + 1}: " + ", ".join(
            f"{name} {number(results[name]['figures'][-1])}" for name in names if results[name]["figures"])
            + f" {row.unit}")
    return results


def judge(row, claim, results):
    """The claim with what was found; without a verdict where a side is missing."""
    found = {"what": claim.what, "of": list(claim.of), "against": list(claim.against), "wanted": claim.wanted,
             "compare": claim.compare, "better": row.better}
    sides = []
    for names in (claim.of, claim.against):
        measured = [name for name in names if results[name]["figures"]]
        if not measured:
            return found
        sides.append(row.best(measured, key=lambda name: statistics.median(results[name]["figures"])))
    found["sides"] = sides
    pairs = list(zip(*(results[name]["figures"] for name in sides)))
    found["values"] = spread([a - b if claim.compare == "difference" else a / b for a, b in pairs])
    if claim.wanted is not None:
        median = found["values"]["median"]
        if claim.compare == "difference":
            found["reached"] = abs(median) <= claim.wanted
        else:
            found["reached"] = median >= claim.wanted if row.better == "more" else median <= claim.wanted
    return found
