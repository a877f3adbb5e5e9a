#include <array>
#include <string_view>

#include "fuzz.h"
#include "gloss/inspect/chart.h"
#include "gloss/inspect/training_chart.h"

namespace {
using namespace gloss;

// Whatever a log holds becomes a chart or an Error.
void read(std::string_view input) {
  const std::array runs = {inspect::parse_training_log(input, "train.jsonl")};
  for (const inspect::Over over : {inspect::Over::updates, inspect::Over::time}) {
    const inspect::Chart chart = inspect::training_chart(runs, {{}, over, 3});
    for (const inspect::Panel& panel : chart.panels) {
      for (const inspect::Series& series : panel.series)
        fuzz::check(series.x.size() == series.y.size(), "a place for each value");
    }
    if (!inspect::pictures_available()) continue;
    const inspect::Picture picture = inspect::draw(chart, inspect::PictureFormat::svg);
    fuzz::check(picture.bytes.size() < 200000, "a picture of bounded size");
  }
}
}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::accepts([&] { read(fuzz::text_of(data, size)); });
  return 0;
}
