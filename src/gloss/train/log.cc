#include "gloss/train/log.h"

#include <fstream>
#include <string>

#include "gloss/base/error.h"
#include "gloss/io/atomic_file.h"

namespace gloss::train {

TrainLog::TrainLog(std::filesystem::path path, int64_t update) : path_(std::move(path)) {
  std::string kept;
  std::ifstream in(path_);
  for (std::string line; std::getline(in, line);) {
    const auto entry = nlohmann::json::parse(line, nullptr, false);
    if (entry.is_object() && entry.contains("update") && entry["update"].is_number_integer() &&
        entry["update"].get<int64_t>() <= update) {
      kept += line + "\n";
    }
  }
  io::write_file_atomically(path_, kept);
}

void TrainLog::write(const nlohmann::ordered_json& entry) {
  std::ofstream out(path_, std::ios::app);
  out << entry.dump() << "\n" << std::flush;
  require(static_cast<bool>(out), "cannot write {}: is the disk full? The model so far is intact",
          path_.string());
}

}  // namespace gloss::train
