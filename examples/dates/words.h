// Numbers, months and weekdays in English and German words: everything a written date is made of.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace gloss::dates {

enum class Language { kEnglish, kGerman };

// A day of the Gregorian calendar between 1900-01-01 and 2099-12-31; the words for years go no further.
using Day = std::chrono::sys_days;
inline constexpr int kFirstYear = 1900, kLastYear = 2099;

// One part of a date in words or figures. Throws gloss::Error for a name that the language does not have.
//   figures   d 3 | dd 03 | m 3 | mm 03 | y 2021 | q 1 (quarter) | roman III (month)
//   names     month March, März | mon Mar, Mär | mon. Sept. (dotted where shortened) | weekday | wd
//   English   dth 3rd | mth 3rd | day third | month# third | quarter first
//             year twenty twenty-one | year-and two thousand and twenty-one | year-us two thousand twenty-one
//   German    day-e dritte, day-en, day-er | Month-e Dritte, Month-en, Month-er | month-en dritten
//             quarter-en ersten | year zweitausendeinundzwanzig
std::string part(Language language, std::string_view name, Day day);

// "2021-03-03"
std::string iso(Day day);

// The day of an ISO date; throws gloss::Error when there is no such day or its year is outside the range.
Day from_iso(std::string_view text);

}  // namespace gloss::dates
