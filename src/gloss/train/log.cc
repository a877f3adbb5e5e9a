#include "gloss/train/log.h"

#include <fstream>
#include <string>

#include "gloss/base/error.h"
#include "gloss/io/atomic_file.h"

namespace gloss::train {

TrainLog::TrainLog(std::filesystem::path path, int64_t lines) : path_(std::move(path)) {
  io::AtomicFile kept(path_);
  std::ifstream in(path_);
  for (std::string line; lines_ < lines && std::getline(in, line); ++lines_) kept.write(line + "\n");
  kept.commit();
}

void TrainLog::write(const nlohmann::ordered_json& entry) {
  std::ofstream out(path_, std::ios::app);
  out << entry.dump() << "\n" << std::flush;
  require(
      static_cast<bool>(out),
      "cannot write {}: the disk may be full; the last saved state is intact: free some space and give the "
      "same command to go on",
      path_.string());
  ++lines_;
}

}  // namespace gloss::train
