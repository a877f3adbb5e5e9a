// The lines on their way through a Translator: read in order, translated in any, delivered in order.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "gloss/decode/line_parts.h"
#include "gloss/decode/translation.h"

namespace gloss::decode {

// A line, its parts and what became of them so far.
struct PendingLine {
  Translation result;
  std::vector<LinePart> parts;
  std::vector<std::vector<Candidate>> found;  // a part each, the best first
  size_t missing = 0;                         // parts without result
  int64_t pieces = 0;
};

// A part of a line for a worker to translate. The line stays where it is until its last part is finished.
struct Job {
  PendingLine* line = nullptr;
  size_t part = 0;
  const LinePart& text() const { return line->parts[part]; }
};

// Between one reader and the workers. Results are delivered by whichever thread completes the next line in
// order; nobody waits for it but that thread. The first exception of anybody stops everybody.
class LineQueue {
 public:
  LineQueue(float length_penalty, std::function<void(Translation)> deliver)
      : length_penalty_(length_penalty), deliver_(std::move(deliver)) {}

  // The reader's side. wait_for_room returns once fewer than `lines` lines with fewer than `pieces` pieces
  // are on their way; false when somebody stopped.
  bool wait_for_room(size_t lines, int64_t pieces);
  // Lines in order. Their parts are queued the longest first, so that the last ones left are short.
  void add(std::vector<std::unique_ptr<PendingLine>> lines);
  void close();  // no more will come

  // A worker's side. Takes at most `most` jobs and no more than a fair share among `workers`; waits for the
  // first unless `busy`. Empty: nothing to take now, or (unless busy) ever.
  std::vector<Job> take(size_t most, size_t workers, bool busy);
  // A part is done.
  void finish(const Job& job, std::vector<Candidate> candidates, int64_t key_value_rows);

  void stop(std::exception_ptr error);
  bool stopped() const;
  void rethrow() const;  // the first error, if any

 private:
  using Lock = std::unique_lock<std::mutex>;
  void deliver_ready(Lock& lock);

  const float length_penalty_;
  const std::function<void(Translation)> deliver_;
  mutable std::mutex mutex_;
  std::condition_variable work_, room_;
  std::deque<std::unique_ptr<PendingLine>> lines_;  // in order; delivered ones are gone
  std::deque<Job> jobs_;
  int64_t pieces_ = 0;  // of lines_
  bool closed_ = false, delivering_ = false, stopped_ = false;
  std::exception_ptr error_;
};

}  // namespace gloss::decode
