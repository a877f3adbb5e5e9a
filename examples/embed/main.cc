// The smallest useful program with the installed library: opens a model folder and translates.
//   embed MODEL "a sentence" ["another" ...]
#include <cstdio>
#include <string>
#include <vector>

#include "gloss/base/error.h"
#include "gloss/decode/translator.h"

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: embed MODEL SENTENCE...\n");
    return 2;
  }
  try {
    const gloss::decode::Translator translator(argv[1]);
    const std::vector<std::string> sentences(argv + 2, argv + argc);
    for (const gloss::decode::Translation& each : translator.translate(sentences)) {
      std::puts(each.text().c_str());
    }
  } catch (const gloss::Error& error) {  // one sentence: what was wrong, where, what to do
    std::fprintf(stderr, "embed: %s\n", error.what());
    return 1;
  }
}
