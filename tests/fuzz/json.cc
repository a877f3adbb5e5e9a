#include "gloss/io/json_file.h"

#include "fuzz.h"

using namespace gloss;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::accepts([&] {
    const nlohmann::json value = io::parse_json(fuzz::text_of(data, size), "input");
    fuzz::check(io::parse_json(value.dump(), "again") == value, "JSON read back");
  });
  return 0;
}
