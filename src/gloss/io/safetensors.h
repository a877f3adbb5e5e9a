// The safetensors format: 8 bytes little-endian header length, a JSON header, then the numbers of all
// tensors. https://huggingface.co/docs/safetensors
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gloss/io/input_file.h"
#include "gloss/tensor/tensor.h"

namespace gloss::io {

enum class Dtype { kF64, kF32, kF16, kBF16, kI64, kI32, kI8, kU8, kBool };

std::string_view dtype_name(Dtype dtype);  // as in the file: "F32"
size_t dtype_bytes(Dtype dtype);

template <class T>
inline constexpr Dtype kDtypeOf = [] {
  if constexpr (std::is_same_v<T, double>) return Dtype::kF64;
  if constexpr (std::is_same_v<T, float>) return Dtype::kF32;
  if constexpr (std::is_same_v<T, int64_t>) return Dtype::kI64;
  if constexpr (std::is_same_v<T, int32_t>) return Dtype::kI32;
  if constexpr (std::is_same_v<T, int8_t>) return Dtype::kI8;
  if constexpr (std::is_same_v<T, uint8_t>) return Dtype::kU8;
}();

struct TensorInfo {
  Dtype dtype = Dtype::kF32;
  std::vector<int64_t> shape;  // any rank; empty for a scalar
  uint64_t begin = 0;          // first byte in the file
  uint64_t bytes = 0;
  int64_t count() const { return static_cast<int64_t>(bytes / dtype_bytes(dtype)); }  // elements
};

// A file whose header has been checked completely: names unique, every tensor inside the file and as long as
// its shape and dtype say, tensors side by side without gap or overlap up to the end of the file. Nothing of
// the numbers is read before it is asked for. Threads may read at the same time.
class SafetensorsFile {
 public:
  // Throws "<file>: ..." about the first thing that is wrong.
  static SafetensorsFile open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return file_.path(); }
  std::vector<std::string> names() const;  // sorted
  bool has(std::string_view name) const { return tensors_.contains(name); }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  // Throws when there is no such tensor.
  const TensorInfo& info(std::string_view name) const;

  // A floating-point tensor as float or double; a scalar has shape [1]. Throws for whole numbers and for more
  // than four dimensions.
  template <class T>
  Tensor<T> read(std::string_view name, Arena& arena) const;
  // The same, into memory of exactly as many elements, or as many as it has from element `first` on.
  template <class T>
  void read_into(std::string_view name, std::span<T> out) const;
  template <class T>
  void read_part(std::string_view name, int64_t first, std::span<T> out) const;
  // Whole numbers and booleans of any width. Throws for floating point.
  std::vector<int64_t> read_ints(std::string_view name) const;
  // The bytes as they stand in the file; `out` must have exactly info(name).bytes, or fewer from byte `first`
  // on.
  void read_bytes(std::string_view name, std::span<std::byte> out) const;
  void read_bytes_part(std::string_view name, uint64_t first, std::span<std::byte> out) const;

 private:
  explicit SafetensorsFile(InputFile file) : file_(std::move(file)) {}
  void parse_header(std::string_view header, uint64_t data_begin);
  TensorInfo part_of(std::string_view name, uint64_t first, uint64_t bytes) const;

  InputFile file_;
  std::map<std::string, TensorInfo, std::less<>> tensors_;
  std::map<std::string, std::string> metadata_;
};

enum class TensorOrder {
  kByName,  // widest elements first, then by name: every tensor is aligned, as the reference library has it
  kGiven,   // as added
};

// Collects tensors and writes them as one atomic file. Equal contents give equal bytes. The numbers are
// borrowed (spans) or shared (tensors) until write().
class SafetensorsWriter {
 public:
  explicit SafetensorsWriter(TensorOrder order = TensorOrder::kByName) : order_(order) {}

  // Text beside the tensors, such as ("format", "pt"), which transformers asks for.
  void set_metadata(std::string key, std::string value) { metadata_[std::move(key)] = std::move(value); }
  // double, float, int64_t, int32_t, int8_t or uint8_t.
  template <class T>
  // NOLINTNEXTLINE(performance-unnecessary-value-param): moved on, which templates hide from it
  void add(std::string name, std::vector<int64_t> shape, std::span<const T> values) {
    add_bytes(std::move(name), kDtypeOf<T>, std::move(shape), std::as_bytes(values));
  }
  template <class T>
  void add(std::string name, const Tensor<T>& tensor) {
    std::vector<int64_t> shape;
    shape.reserve(static_cast<size_t>(tensor.shape().rank()));
    for (int i = 0; i < tensor.shape().rank(); ++i) shape.push_back(tensor.shape()[i]);
    require(!shape.empty(), "tensor '{}' holds nothing and cannot be written", name);
    add_bytes(std::move(name), kDtypeOf<T>, std::move(shape), std::as_bytes(tensor.values()),
              std::make_shared<Tensor<T>>(tensor));
  }
  // Throws for a name used twice and for bytes that do not fill the shape. `owner` keeps the bytes alive.
  void add_bytes(std::string name, Dtype dtype, std::vector<int64_t> shape, std::span<const std::byte> bytes,
                 std::shared_ptr<const void> owner = nullptr);

  // The size of the file that write() makes, for a disk space check.
  uint64_t file_bytes() const;
  void write(const std::filesystem::path& path) const;

 private:
  struct Entry {
    std::string name;
    Dtype dtype;
    std::vector<int64_t> shape;
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> owner;
  };
  std::vector<const Entry*> ordered() const;
  std::string header() const;  // with its length in front, padded to a multiple of 8

  std::vector<Entry> entries_;
  std::set<std::string> names_;
  std::map<std::string, std::string> metadata_;
  TensorOrder order_;
};

}  // namespace gloss::io
