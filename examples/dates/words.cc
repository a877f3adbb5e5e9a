#include "words.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "gloss/base/error.h"

namespace gloss::dates {
namespace {

using Words = const std::array<std::string_view, 20>;

constexpr std::array<std::string_view, 12> kEnglishMonths = {"January",   "February", "March",    "April",
                                                             "May",       "June",     "July",     "August",
                                                             "September", "October",  "November", "December"};
constexpr std::array<std::string_view, 12> kGermanMonths = {"Januar",    "Februar", "März",     "April",
                                                            "Mai",       "Juni",    "Juli",     "August",
                                                            "September", "Oktober", "November", "Dezember"};
constexpr std::array<std::string_view, 12> kGermanShortMonths = {"Jan", "Feb", "Mär", "Apr", "Mai", "Jun",
                                                                 "Jul", "Aug", "Sep", "Okt", "Nov", "Dez"};
// Shortened as dictionaries do: four letters at most are not shortened, and only what is shortened has a dot.
constexpr std::array<std::string_view, 12> kEnglishDottedMonths = {
    "Jan.", "Feb.", "Mar.", "Apr.", "May", "June", "July", "Aug.", "Sept.", "Oct.", "Nov.", "Dec."};
constexpr std::array<std::string_view, 12> kGermanDottedMonths = {
    "Jan.", "Febr.", "März", "Apr.", "Mai", "Juni", "Juli", "Aug.", "Sept.", "Okt.", "Nov.", "Dez."};
constexpr std::array<std::string_view, 12> kRomanMonths = {"I",   "II",   "III", "IV", "V",  "VI",
                                                           "VII", "VIII", "IX",  "X",  "XI", "XII"};
constexpr std::array<std::string_view, 7> kEnglishWeekdays = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                              "Thursday", "Friday", "Saturday"};
constexpr std::array<std::string_view, 7> kGermanWeekdays = {"Sonntag",    "Montag",  "Dienstag", "Mittwoch",
                                                             "Donnerstag", "Freitag", "Samstag"};

constexpr Words kEnglishNumbers = {"",        "one",     "two",       "three",    "four",
                                   "five",    "six",     "seven",     "eight",    "nine",
                                   "ten",     "eleven",  "twelve",    "thirteen", "fourteen",
                                   "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
constexpr Words kEnglishOrdinals = {"",          "first",     "second",      "third",      "fourth",
                                    "fifth",     "sixth",     "seventh",     "eighth",     "ninth",
                                    "tenth",     "eleventh",  "twelfth",     "thirteenth", "fourteenth",
                                    "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth"};
constexpr std::array<std::string_view, 10> kEnglishTens = {"",      "",      "twenty",  "thirty", "forty",
                                                           "fifty", "sixty", "seventy", "eighty", "ninety"};

constexpr Words kGermanNumbers = {"",         "eins",     "zwei",     "drei",     "vier",
                                  "fünf",     "sechs",    "sieben",   "acht",     "neun",
                                  "zehn",     "elf",      "zwölf",    "dreizehn", "vierzehn",
                                  "fünfzehn", "sechzehn", "siebzehn", "achtzehn", "neunzehn"};
constexpr std::array<std::string_view, 10> kGermanTens = {
    "", "", "zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig"};

struct Date {
  unsigned day, month, quarter, weekday;  // weekday: 0 is Sunday
  int year;
};

Date split(Day day) {
  const std::chrono::year_month_day ymd(day);
  const unsigned month = static_cast<unsigned>(ymd.month());
  return {static_cast<unsigned>(ymd.day()), month, (month + 2) / 3, std::chrono::weekday(day).c_encoding(),
          static_cast<int>(ymd.year())};
}

// 1 .. 99
std::string english_number(unsigned n) {
  if (n < 20) return std::string(kEnglishNumbers[n]);
  const std::string tens(kEnglishTens[n / 10]);
  return n % 10 == 0 ? tens : fmt::format("{}-{}", tens, kEnglishNumbers[n % 10]);
}

// 1 .. 31
std::string english_ordinal(unsigned n) {
  if (n < 20) return std::string(kEnglishOrdinals[n]);
  if (n % 10 == 0) return n == 20 ? "twentieth" : "thirtieth";
  return fmt::format("{}-{}", kEnglishTens[n / 10], kEnglishOrdinals[n % 10]);
}

std::string_view english_suffix(unsigned n) {
  if (n >= 11 && n <= 13) return "th";
  return n % 10 == 1 ? "st" : n % 10 == 2 ? "nd" : n % 10 == 3 ? "rd" : "th";
}

std::string_view english_century(int year) {
  return year < 2000 ? "nineteen hundred" : "two thousand";
}

// In pairs: nineteen eighty-four, nineteen oh five, twenty twenty-one; round years are said in full.
std::string english_year(int year) {
  const unsigned rest = static_cast<unsigned>(year % 100);
  if (rest == 0) return std::string(english_century(year));
  return fmt::format("{} {}{}", english_number(static_cast<unsigned>(year / 100)), rest < 10 ? "oh " : "",
                     english_number(rest));
}

std::string english_long_year(int year, std::string_view joint) {
  const unsigned rest = static_cast<unsigned>(year % 100);
  if (rest == 0) return std::string(english_century(year));
  return fmt::format("{}{}{}", english_century(year), joint, english_number(rest));
}

// 1 .. 99
std::string german_number(unsigned n) {
  if (n < 20) return std::string(kGermanNumbers[n]);
  if (n % 10 == 0) return std::string(kGermanTens[n / 10]);
  return fmt::format("{}und{}", n % 10 == 1 ? "ein" : kGermanNumbers[n % 10], kGermanTens[n / 10]);
}

// 1 .. 31, without the ending: "dritt" + "e", "en" or "er".
std::string german_ordinal(unsigned n) {
  switch (n) {
    case 1:
      return "erst";
    case 3:
      return "dritt";
    case 7:
      return "siebt";
    case 8:
      return "acht";
    default:
      return german_number(n) + (n < 20 ? "t" : "st");
  }
}

std::string german_year(int year) {
  const unsigned rest = static_cast<unsigned>(year % 100);
  return (year < 2000 ? "neunzehnhundert" : "zweitausend") + (rest == 0 ? "" : german_number(rest));
}

// An ordinal that stands for a noun, as a month does: "der dritte Dritte". The first letter is ASCII unless
// it is the ü of "fünfte", which is not the first.
std::string capital(std::string word) {
  word[0] = static_cast<char>(word[0] - 'a' + 'A');
  return word;
}

// Parts that both languages write alike.
std::string shared_part(std::string_view name, const Date& date) {
  if (name == "d") return fmt::format("{}", date.day);
  if (name == "dd") return fmt::format("{:02}", date.day);
  if (name == "m") return fmt::format("{}", date.month);
  if (name == "mm") return fmt::format("{:02}", date.month);
  if (name == "y") return fmt::format("{}", date.year);
  if (name == "q") return fmt::format("{}", date.quarter);
  if (name == "roman") return std::string(kRomanMonths[date.month - 1]);
  return {};
}

std::string english_part(std::string_view name, const Date& date) {
  const std::string_view month = kEnglishMonths[date.month - 1], weekday = kEnglishWeekdays[date.weekday];
  if (name == "month") return std::string(month);
  if (name == "mon") return std::string(month.substr(0, 3));
  if (name == "mon.") return std::string(kEnglishDottedMonths[date.month - 1]);
  if (name == "weekday") return std::string(weekday);
  if (name == "wd") return std::string(weekday.substr(0, 3));
  if (name == "dth") return fmt::format("{}{}", date.day, english_suffix(date.day));
  if (name == "mth") return fmt::format("{}{}", date.month, english_suffix(date.month));
  if (name == "day") return english_ordinal(date.day);
  if (name == "month#") return english_ordinal(date.month);
  if (name == "quarter") return english_ordinal(date.quarter);
  if (name == "year") return english_year(date.year);
  if (name == "year-and") return english_long_year(date.year, " and ");
  if (name == "year-us") return english_long_year(date.year, " ");
  return {};
}

std::string german_part(std::string_view name, const Date& date) {
  const std::string_view weekday = kGermanWeekdays[date.weekday];
  if (name == "month") return std::string(kGermanMonths[date.month - 1]);
  if (name == "mon") return std::string(kGermanShortMonths[date.month - 1]);
  if (name == "mon.") return std::string(kGermanDottedMonths[date.month - 1]);
  if (name == "weekday") return std::string(weekday);
  if (name == "wd") return std::string(weekday.substr(0, 2));
  if (name == "year") return german_year(date.year);
  const size_t dash = name.find('-');
  if (dash == name.npos) return {};
  const std::string_view what = name.substr(0, dash), ending = name.substr(dash + 1);
  if (ending != "e" && ending != "en" && ending != "er") return {};
  if (what == "day") return german_ordinal(date.day).append(ending);
  if (what == "month") return german_ordinal(date.month).append(ending);
  if (what == "Month") return capital(german_ordinal(date.month)).append(ending);
  if (what == "quarter") return german_ordinal(date.quarter).append(ending);
  return {};
}

int number(std::string_view text) {
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? value : -1;
}

}  // namespace

std::string part(Language language, std::string_view name, Day day) {
  const Date date = split(day);
  std::string text = shared_part(name, date);
  if (text.empty())
    text = language == Language::kEnglish ? english_part(name, date) : german_part(name, date);
  require(!text.empty(), "a date has no part called '{}' in {}", name,
          language == Language::kEnglish ? "English" : "German");
  return text;
}

std::string iso(Day day) {
  const Date date = split(day);
  return fmt::format("{:04}-{:02}-{:02}", date.year, date.month, date.day);
}

Day from_iso(std::string_view text) {
  const auto no_date = [&] {
    fail("expected a day between {}-01-01 and {}-12-31 such as 2021-03-03, got '{}'", kFirstYear, kLastYear,
         text);
  };
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') no_date();
  const int y = number(text.substr(0, 4)), m = number(text.substr(5, 2)), d = number(text.substr(8, 2));
  if (y < kFirstYear || y > kLastYear || m < 1 || d < 1) no_date();
  const std::chrono::year_month_day day(std::chrono::year(y), std::chrono::month(static_cast<unsigned>(m)),
                                        std::chrono::day(static_cast<unsigned>(d)));
  if (!day.ok()) no_date();
  return day;
}

}  // namespace gloss::dates
