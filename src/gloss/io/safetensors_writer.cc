#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "gloss/io/atomic_file.h"
#include "gloss/io/quote.h"
#include "gloss/io/safetensors.h"

namespace gloss::io {

void SafetensorsWriter::add_bytes(std::string name, Dtype dtype, std::vector<int64_t> shape,
                                  std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  require(name != "__metadata__", "a tensor cannot be named '__metadata__'");
  uint64_t expected = dtype_bytes(dtype);
  for (const int64_t dim : shape) expected *= static_cast<uint64_t>(dim);
  require(expected == bytes.size(), "tensor {}: shape [{}] of {} needs {} bytes, {} were given",
          in_quotes(name), fmt::join(shape, ", "), dtype_name(dtype), expected, bytes.size());
  require(names_.insert(name).second, "tensor {} is added twice", in_quotes(name));
  entries_.push_back({std::move(name), dtype, std::move(shape), bytes, std::move(owner)});
}

std::vector<const SafetensorsWriter::Entry*> SafetensorsWriter::ordered() const {
  std::vector<const Entry*> out;
  out.reserve(entries_.size());
  for (const Entry& entry : entries_) out.push_back(&entry);
  if (order_ == TensorOrder::kByName) {
    std::sort(out.begin(), out.end(), [](const Entry* a, const Entry* b) {
      const size_t wide_a = dtype_bytes(a->dtype), wide_b = dtype_bytes(b->dtype);
      return wide_a != wide_b ? wide_a > wide_b : a->name < b->name;
    });
  }
  return out;
}

std::string SafetensorsWriter::header() const {
  nlohmann::ordered_json root = nlohmann::ordered_json::object();
  if (!metadata_.empty()) root["__metadata__"] = metadata_;
  uint64_t begin = 0;
  for (const Entry* entry : ordered()) {
    const uint64_t end = begin + entry->bytes.size();
    nlohmann::ordered_json item;
    item["dtype"] = dtype_name(entry->dtype);
    item["shape"] = entry->shape;
    item["data_offsets"] = {begin, end};
    root[entry->name] = std::move(item);
    begin = end;
  }
  std::string text;
  try {
    text = root.dump();
  } catch (const nlohmann::json::exception&) {
    fail("the names and metadata of a safetensors file must be valid UTF-8");
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  std::string out(sizeof(length), '\0');
  std::memcpy(out.data(), &length, sizeof(length));
  return out + text;
}

uint64_t SafetensorsWriter::file_bytes() const {
  uint64_t bytes = header().size();
  for (const Entry& entry : entries_) bytes += entry.bytes.size();
  return bytes;
}

void SafetensorsWriter::write(const std::filesystem::path& path) const {
  const std::string head = header();
  AtomicFile file(path);
  file.write(head);
  for (const Entry* entry : ordered()) file.write(entry->bytes);
  file.commit();
}

}  // namespace gloss::io
