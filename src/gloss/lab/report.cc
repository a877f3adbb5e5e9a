#include "gloss/lab/report.h"

#include <algorithm>
#include <cmath>

namespace gloss::lab {
namespace {

// Characters, not bytes: enough for the letters and signs of formulas.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

std::string cell(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  return fmt::format("{:.4g}", number);
}

std::string Table::text() const {
  std::vector<size_t> widths;
  for (const std::string& column : columns) widths.push_back(width_of(column));
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size() && i < widths.size(); ++i)
      widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string out = caption.empty() ? "" : caption + "\n";
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (size_t i = 0; i < cells.size() && i < widths.size(); ++i) {
      const std::string padding(widths[i] - width_of(cells[i]), ' ');
      text += (i == 0 ? "  " : "   ") + (i == 0 ? cells[i] + padding : padding + cells[i]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  };
  line(columns);
  for (const auto& row : rows) line(row);
  return out;
}

bool Report::holds() const {
  return std::ranges::all_of(claims, &Claim::holds);
}

std::string Report::text() const {
  std::string out;
  for (const Table& table : tables) out += table.text() + "\n";
  for (const Claim& claim : claims) {
    out += fmt::format("{} {}{}\n", claim.holds ? "holds:" : "FAILS:", claim.text,
                       claim.seen.empty() ? "" : " (" + claim.seen + ")");
  }
  return out;
}

}  // namespace gloss::lab
