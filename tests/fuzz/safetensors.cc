#include "gloss/io/safetensors.h"

#include <vector>

#include "fuzz.h"
#include "gloss/tensor/arena.h"

namespace {
using namespace gloss;

// Tensors that were accepted lie inside the file, so they can be read whole.
void read_all(const io::SafetensorsFile& file, size_t size) {
  Arena arena;
  for (const std::string& name : file.names()) {
    const io::TensorInfo& info = file.info(name);
    fuzz::check(info.bytes <= size && info.begin + info.bytes <= size, "a tensor inside the file");
    std::vector<std::byte> bytes(info.bytes);
    file.read_bytes(name, bytes);
    fuzz::accepts([&] { file.read<float>(name, arena); });
    fuzz::accepts([&] { file.read<double>(name, arena); });
    fuzz::accepts([&] { file.read_ints(name); });
  }
}
}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const fuzz::MemoryFile memory(fuzz::text_of(data, size));
  fuzz::accepts([&] { read_all(io::SafetensorsFile::open(memory.path()), size); });
  return 0;
}
