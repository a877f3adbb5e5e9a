// Columns of numbers from a user's own table.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace gloss::lab {

inline constexpr int64_t kMostRows = 10000;

struct NumberColumns {
  std::vector<std::string> names;            // from the header; "column 2" without one
  std::vector<std::vector<double>> columns;  // as they were asked for
};

// Reads columns of a CSV file (RFC 4180: commas, quotes; semicolons or tabs where the first line has them
// instead). `wanted` are numbers from 1, or names of the header that are
// no numbers. The first line is a header when a cell of it
// that is wanted is no number. Empty lines are skipped. Throws Error that names file, line and column for a
// cell that is no finite number, for a line without such a cell, for a column that does not exist, for a file
// without rows and one of more than kMostRows.
NumberColumns read_csv(const std::filesystem::path& path, const std::vector<std::string>& wanted);

}  // namespace gloss::lab
