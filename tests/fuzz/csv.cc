#include "gloss/lab/csv.h"

#include <cmath>

#include "fuzz.h"

using namespace gloss;

// A table that is accepted has finite numbers only, as many in each column.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const fuzz::MemoryFile memory(fuzz::text_of(data, size));
  for (const std::vector<std::string>& wanted :
       {std::vector<std::string>{"1", "2"}, {"weight, kg", "height"}}) {
    fuzz::accepts([&] {
      const lab::NumberColumns table = lab::read_csv(memory.path(), wanted);
      fuzz::check(table.names.size() == 2 && table.columns.size() == 2, "as many columns as were asked for");
      fuzz::check(table.columns[0].size() == table.columns[1].size(), "columns of one length");
      for (const std::vector<double>& column : table.columns) {
        for (const double value : column) fuzz::check(std::isfinite(value), "finite numbers");
      }
    });
  }
  return 0;
}
