// Options from a JSON file: those of training, the largest table.
#include "gloss/train/options.h"
#include "fuzz.h"
#include "gloss/io/json_file.h"
#include "gloss/io/options_json.h"

using namespace gloss;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::accepts([&] {
    const io::JsonObject json(io::parse_json(fuzz::text_of(data, size), "options.json"), "options.json");
    const auto read = io::options_from_json<train::TrainOptions>(json);
    const io::JsonObject written(nlohmann::json::parse(io::options_to_json(read.value).dump()), "written");
    fuzz::check(io::options_to_json(io::options_from_json<train::TrainOptions>(written).value) ==
                    io::options_to_json(read.value),
                "options read back");
  });
  return 0;
}
