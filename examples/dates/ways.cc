#include "ways.h"

#include <array>

#include "gloss/base/error.h"

namespace gloss::dates {
namespace {

constexpr Language kEn = Language::kEnglish, kDe = Language::kGerman;
constexpr bool kHeldOut = true;

// Two rules keep every text unambiguous: where day and month are both figures the day comes first (or the
// year does, and then the month follows), and years have four figures.
constexpr auto kWays = std::to_array<Way>({
    // English: figures only
    {kEn, "{d}/{m}/{y}"},
    {kEn, "{dd}/{mm}/{y}"},
    {kEn, "{d}-{m}-{y}"},
    {kEn, "{dd}-{mm}-{y}"},
    {kEn, "{dd} {mm} {y}", kHeldOut},
    {kEn, "{y}-{mm}-{dd}"},
    {kEn, "{y}/{mm}/{dd}"},
    {kEn, "{y}/{m}/{d}"},
    {kEn, "{y} {mm} {dd}"},
    {kEn, "{y}{mm}{dd}"},
    {kEn, "{d} {roman} {y}"},
    {kEn, "{d}/{roman}/{y}"},
    // English: the month by name, day first
    {kEn, "{d} {month} {y}"},
    {kEn, "{dd} {month} {y}"},
    {kEn, "{d} {month}, {y}"},
    {kEn, "{dth} {month} {y}"},
    {kEn, "{dth} of {month} {y}", kHeldOut},
    {kEn, "the {dth} of {month} {y}"},
    {kEn, "{d} {mon} {y}"},
    {kEn, "{dth} {mon.} {y}"},
    {kEn, "{dd}-{mon}-{y}"},
    {kEn, "{dd}{mon}{y}"},
    // English: month first
    {kEn, "{month} {d}, {y}"},
    {kEn, "{month} {dd} {y}"},
    {kEn, "{month} {dth}, {y}"},
    {kEn, "{month} the {dth}, {y}"},
    {kEn, "{mon} {d}, {y}"},
    {kEn, "{mon.} {d}, {y}"},
    {kEn, "{mon} {dth} {y}"},
    // English: year first
    {kEn, "{y} {month} {d}"},
    {kEn, "{y}, {month} {dth}"},
    {kEn, "{y} {mon} {dd}"},
    {kEn, "{y}-{mon}-{dd}"},
    // English: in words
    {kEn, "{month} {day}, {y}"},
    {kEn, "the {day} of {month} {y}"},
    {kEn, "the {day} of {month}, {year}"},
    {kEn, "{month} {day}, {year}"},
    {kEn, "{month} the {day}, {year}"},
    {kEn, "{month} {d}, {year}", kHeldOut},
    {kEn, "{d} {month} {year}"},
    {kEn, "the {dth} of {month}, {year}"},
    {kEn, "the {day} of {month}, {year-and}"},
    {kEn, "{d} {month} {year-and}"},
    {kEn, "{month} {day}, {year-us}"},
    {kEn, "{mon} {dth}, {year-us}"},
    {kEn, "the {day} of the {month#}, {year}"},
    {kEn, "the {dth} of the {mth}, {y}"},
    // English: longer phrases
    {kEn, "the {day} day of {month}, {y}"},
    {kEn, "the {day} day of {month}, {year-and}"},
    {kEn, "the {day} day of the {month#} month of {y}"},
    {kEn, "the {dth} day of the {mth} month of {y}"},
    {kEn, "day {d} of {month} {y}"},
    {kEn, "day {d} of month {m}, {y}"},
    {kEn, "year {y}, month {m}, day {d}"},
    {kEn, "{month} {y}, day {d}"},
    {kEn, "in {month} {y}, on the {dth}"},
    {kEn, "in {y}, on {month} {d}"},
    {kEn, "in {year}, on the {dth} of {month}"},
    {kEn, "in the year {y}, on the {day} of {month}", kHeldOut},
    {kEn, "in the year {y}, on {month} the {dth}"},
    {kEn, "{d} {month} in the {quarter} quarter of {y}"},
    {kEn, "Q{q} {y}, {month} {d}"},
    // English: with the weekday
    {kEn, "{weekday}, {d} {month} {y}"},
    {kEn, "{weekday}, {month} {d}, {y}"},
    {kEn, "{weekday} {dth} {month} {y}"},
    {kEn, "{weekday} the {dth} of {month} {y}", kHeldOut},
    {kEn, "{weekday}, the {day} of {month}, {year}"},
    {kEn, "on {weekday}, {month} {day}, {y}"},
    {kEn, "{wd} {d} {mon} {y}"},
    {kEn, "{wd}, {mon} {dth}, {y}"},
    {kEn, "{wd} {dd}/{mm}/{y}"},

    // German: figures only
    {kDe, "{d}.{m}.{y}"},
    {kDe, "{dd}.{mm}.{y}"},
    {kDe, "{d}. {m}. {y}"},
    {kDe, "{dd}. {mm}. {y}"},
    {kDe, "am {d}.{m}.{y}"},
    {kDe, "vom {dd}.{mm}.{y}"},
    {kDe, "den {d}. {m}. {y}"},
    {kDe, "{y}.{mm}.{dd}", kHeldOut},
    {kDe, "{d}.{roman}.{y}"},
    {kDe, "{d}. {roman}. {y}"},
    // German: the month by name
    {kDe, "{d}. {month} {y}"},
    {kDe, "{dd}. {month} {y}"},
    {kDe, "{d}. {mon} {y}"},
    {kDe, "{d}. {mon.} {y}"},
    {kDe, "{dd}.{mon}.{y}"},
    {kDe, "den {d}. {month} {y}", kHeldOut},
    {kDe, "der {d}. {month} {y}"},
    {kDe, "am {d}. {month} {y}"},
    {kDe, "am {d}. {mon.} {y}"},
    {kDe, "{d}. {month} anno {y}"},
    {kDe, "{d}. {month} des Jahres {y}"},
    {kDe, "am {d}. {month} im Jahr {y}"},
    // German: year or month first
    {kDe, "{y}, {d}. {month}"},
    {kDe, "{y}, am {d}. {mon}"},
    {kDe, "im Jahr {y} am {d}. {month}"},
    {kDe, "im {month} {y} am {d}."},
    {kDe, "im {month} {y} am {day-en} Tag"},
    {kDe, "{month} {y}, der {day-e}"},
    {kDe, "{month} {y}, Tag {d}"},
    // German: in words
    {kDe, "am {day-en} {month} {y}"},
    {kDe, "am {day-en} {month} {year}"},
    {kDe, "der {day-e} {month} {y}"},
    {kDe, "der {day-e} {month} {year}"},
    {kDe, "den {day-en} {month} {year}"},
    {kDe, "{day-er} {month} {y}"},
    {kDe, "{day-er} {month} {year}"},
    {kDe, "{d}. {month} {year}"},
    {kDe, "am {d}. {month} {year}", kHeldOut},
    {kDe, "im Jahr {year} am {day-en} {month}"},
    {kDe, "am {day-en} {month} im Jahre {y}"},
    {kDe, "am {day-en} {month} des Jahres {year}"},
    // German: the month counted
    {kDe, "der {day-e} {Month-e} {y}"},
    {kDe, "der {day-e} {Month-e} {year}"},
    {kDe, "am {day-en} {Month-en} {y}", kHeldOut},
    {kDe, "am {day-en} {Month-en} {year}"},
    {kDe, "{day-er} {Month-er} {y}"},
    {kDe, "am {d}. {Month-en} {y}"},
    {kDe, "am {day-en} Tag des {month-en} Monats {y}"},
    {kDe, "Tag {d}, Monat {m}, Jahr {y}"},
    {kDe, "Jahr {y}, Monat {m}, Tag {d}"},
    // German: longer phrases
    {kDe, "am {d}. Tag des {month} {y}"},
    {kDe, "der {day-e} Tag im {month} {y}"},
    {kDe, "der {day-e} Tag im {month} {year}"},
    {kDe, "der {day-e} Tag des Monats {month} {y}"},
    {kDe, "am {day-en} {month} im {quarter-en} Quartal {y}"},
    {kDe, "{q}. Quartal {y}, {d}. {month}"},
    // German: with the weekday
    {kDe, "{weekday}, {d}. {month} {y}"},
    {kDe, "{weekday}, den {d}. {month} {y}"},
    {kDe, "{weekday}, der {d}. {month} {y}", kHeldOut},
    {kDe, "{weekday}, {dd}.{mm}.{y}"},
    {kDe, "{weekday}, der {day-e} {month} {year}"},
    {kDe, "am {weekday}, dem {d}. {month} {y}"},
    {kDe, "am {weekday}, dem {day-en} {month} {year}"},
    {kDe, "am {weekday}, den {day-en} {month} {y}"},
    {kDe, "{wd}, {d}. {mon} {y}"},
    {kDe, "{wd}, {d}.{m}.{y}"},
    {kDe, "{wd} {dd}.{mm}.{y}"},
    {kDe, "{wd}., {d}. {month} {y}"},
});

}  // namespace

std::span<const Way> ways() {
  return kWays;
}

std::string write(const Way& way, Day day) {
  std::string text;
  std::string_view rest = way.pattern;
  while (!rest.empty()) {
    const size_t open = rest.find('{');
    text += rest.substr(0, open);
    if (open == rest.npos) break;
    const size_t close = rest.find('}', open);
    require(close != rest.npos, "the way '{}' opens a brace and does not close it", way.pattern);
    text += part(way.language, rest.substr(open + 1, close - open - 1), day);
    rest.remove_prefix(close + 1);
  }
  return text;
}

}  // namespace gloss::dates
