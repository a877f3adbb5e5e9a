#include "gloss/data/lexical_table.h"

#include "fuzz.h"
#include "gloss/decode/shortlist.h"

using namespace gloss;

// Whatever is read as a table of pieces is written and read as the same again, and makes a shortlist.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const text::Vocabulary vocabulary({"</s>", "<unk>", "a", "b", "▁the", "▁Haus", "er", ".", "<pad>"});
  const fuzz::MemoryFile memory(fuzz::text_of(data, size));
  fuzz::accepts([&] {
    const data::LexicalTable table = data::read_lexical_table(memory.path(), vocabulary, vocabulary);
    std::string text;
    const int64_t left_out = data::write_lexical_table(table, vocabulary, vocabulary,
                                                       [&](std::string_view part) { text += part; });
    fuzz::check(left_out == 0, "what was read fits a line");
    const fuzz::MemoryFile written(text);
    const data::LexicalTable again = data::read_lexical_table(written.path(), vocabulary, vocabulary);
    fuzz::check(again.entries == table.entries, "the same again");
    const decode::Shortlist shortlist(table, vocabulary, vocabulary, {2, 2, 0.1f});
    fuzz::check(shortlist.tokens(std::vector{2, 3, 4, 0}).size() >= 5, "pieces of the source");
  });
  return 0;
}
