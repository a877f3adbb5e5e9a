#include "gloss/text/vocabulary.h"

#include "fuzz.h"

using namespace gloss;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const fuzz::MemoryFile memory(fuzz::text_of(data, size));
  fuzz::accepts([&] {
    const auto vocabulary = text::Vocabulary::load(memory.path());
    for (int32_t id = 0; id < vocabulary.size(); ++id) {
      fuzz::check(vocabulary.find(vocabulary.piece(id)) == id, "every piece found at its id");
    }
  });
  return 0;
}
