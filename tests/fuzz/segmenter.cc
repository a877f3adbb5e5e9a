// SentencePiece's model files. Its library trusts what it loads: what from_bytes lets through must work.
#include "gloss/text/segmenter.h"

#include "fuzz.h"
#include "gloss/text/utf8.h"

using namespace gloss;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::accepts([&] {
    const auto segmenter = text::Segmenter::from_bytes(std::string(fuzz::text_of(data, size)), "input");
    for (const std::string_view line :
         {"", "A man rides a bicycle, 12345 \xC3\xBC\xC3\x9F \xEF\xBC\xA1\xE2\x84\xA2",
          "\xE6\xBC\xA2\xE5\xAD\x97 \xF0\x9F\x98\x80\xE2\x80\x8D \xE2\x96\x81 \t <unk> </s>"}) {
      const std::vector<text::Piece> pieces = segmenter.encode(line);
      std::vector<std::string_view> texts;
      int64_t end = 0;
      for (const text::Piece& piece : pieces) {
        fuzz::check(piece.begin >= end && piece.end >= piece.begin && piece.end <= std::ssize(line),
                    "spans in order");
        end = piece.end;
        texts.push_back(piece.text);
      }
      segmenter.decode(texts);
    }
  });
  return 0;
}
