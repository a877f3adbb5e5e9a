// config.json of a model folder, and what is made of its numbers before anything is allocated.
#include "gloss/models/config.h"

#include "fuzz.h"
#include "gloss/io/json_file.h"

using namespace gloss;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::accepts([&] {
    const io::JsonObject json(io::parse_json(fuzz::text_of(data, size), "config.json"), "config.json");
    const models::TransformerConfig config = models::transformer_from_json(json);
    models::validate(config);
    fuzz::check(models::parameter_count(config) > 0, "a model with parameters");
    // What was understood is written and understood again.
    const io::JsonObject written(nlohmann::json::parse(models::to_json(config).dump()), "written");
    fuzz::check(models::transformer_from_json(written) == config, "config.json read back");
  });
  return 0;
}
