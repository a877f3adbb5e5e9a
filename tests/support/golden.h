// The golden numbers of PyTorch (tests/golden, made by make_golden.py there).
#pragma once

#include <string>
#include <vector>

#include "gloss/io/safetensors.h"

namespace gloss::tests {

class Golden {
 public:
  explicit Golden(const std::string& name)
      : file_(io::SafetensorsFile::open(std::string(GLOSS_TEST_GOLDEN) + "/" + name + ".safetensors")) {}

  template <class T>
  Tensor<T> read(Arena& arena, const std::string& name) const {
    return file_.read<T>(name, arena);
  }
  std::vector<int64_t> ints(const std::string& name) const { return file_.read_ints(name); }
  bool has(const std::string& name) const { return file_.has(name); }
  // A setting, as JSON text.
  const std::string& setting(const std::string& name) const { return file_.metadata().at(name); }

 private:
  io::SafetensorsFile file_;
};

}  // namespace gloss::tests
