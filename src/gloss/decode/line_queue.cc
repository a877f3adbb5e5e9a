#include "gloss/decode/line_queue.h"

#include <algorithm>
#include <cmath>

namespace gloss::decode {
namespace {

// The k-th candidates of all parts as one.
Candidate joined(const PendingLine& line, size_t k, float length_penalty) {
  Candidate whole;
  for (size_t part = 0; part < line.found.size(); ++part) {
    const auto& candidates = line.found[part];
    const Candidate& one = candidates[std::min(k, candidates.size() - 1)];
    whole.text.append(line.parts[part].joint).append(one.text);
    whole.log_probability += one.log_probability;
    whole.tokens.insert(whole.tokens.end(), one.tokens.begin(), one.tokens.end());
    whole.token_log_probabilities.insert(whole.token_log_probabilities.end(),
                                         one.token_log_probabilities.begin(),
                                         one.token_log_probabilities.end());
    whole.finished &= one.finished;
  }
  whole.score = static_cast<float>(whole.log_probability /
                                   std::pow(static_cast<double>(whole.tokens.size()), length_penalty));
  return whole;
}

void complete(PendingLine& line, float length_penalty) {
  if (line.found.size() == 1) {
    line.result.candidates = std::move(line.found.front());
  } else if (line.found.size() > 1) {
    size_t most = 0;
    for (const auto& candidates : line.found) most = std::max(most, candidates.size());
    for (size_t k = 0; k < most; ++k) line.result.candidates.push_back(joined(line, k, length_penalty));
  }
  line.found.clear();
  line.parts.clear();
}

}  // namespace

bool LineQueue::wait_for_room(size_t lines, int64_t pieces) {
  Lock lock(mutex_);
  room_.wait(lock, [&] { return stopped_ || (lines_.size() < lines && pieces_ < pieces); });
  return !stopped_;
}

void LineQueue::add(std::vector<std::unique_ptr<PendingLine>> lines) {
  std::vector<Job> jobs;
  for (const auto& line : lines) {
    line->missing = line->parts.size();
    line->found.resize(line->parts.size());
    for (size_t part = 0; part < line->parts.size(); ++part) jobs.push_back({line.get(), part});
  }
  std::stable_sort(jobs.begin(), jobs.end(), [](const Job& a, const Job& b) {
    return a.text().source.ids.size() > b.text().source.ids.size();
  });
  Lock lock(mutex_);
  for (auto& line : lines) {
    pieces_ += line->pieces;
    lines_.push_back(std::move(line));
  }
  jobs_.insert(jobs_.end(), jobs.begin(), jobs.end());
  work_.notify_all();
  deliver_ready(lock);  // blank lines
}

void LineQueue::close() {
  const Lock lock(mutex_);
  closed_ = true;
  work_.notify_all();
}

std::vector<Job> LineQueue::take(size_t most, size_t workers, bool busy) {
  Lock lock(mutex_);
  if (!busy) work_.wait(lock, [&] { return stopped_ || closed_ || !jobs_.empty(); });
  if (stopped_ || jobs_.empty()) return {};
  const size_t share = (jobs_.size() + workers - 1) / workers;
  const auto end = jobs_.begin() + static_cast<std::ptrdiff_t>(std::min(most, share));
  std::vector<Job> taken(jobs_.begin(), end);
  jobs_.erase(jobs_.begin(), end);
  return taken;
}

void LineQueue::finish(const Job& job, std::vector<Candidate> candidates, int64_t key_value_rows) {
  Lock lock(mutex_);
  job.line->found[job.part] = std::move(candidates);
  job.line->result.key_value_rows += key_value_rows;
  if (--job.line->missing == 0) deliver_ready(lock);
}

// Called with the lock, returns with it. While one thread delivers, others leave their lines to it.
void LineQueue::deliver_ready(Lock& lock) {
  if (delivering_) return;
  delivering_ = true;
  while (!stopped_ && !lines_.empty() && lines_.front()->missing == 0) {
    const std::unique_ptr<PendingLine> line = std::move(lines_.front());
    lines_.pop_front();
    pieces_ -= line->pieces;
    room_.notify_one();
    lock.unlock();
    try {
      complete(*line, length_penalty_);
      deliver_(std::move(line->result));
    } catch (...) {
      stop(std::current_exception());
    }
    lock.lock();
  }
  delivering_ = false;
}

void LineQueue::stop(std::exception_ptr error) {
  const Lock lock(mutex_);
  if (!error_) error_ = std::move(error);
  stopped_ = true;
  work_.notify_all();
  room_.notify_all();
}

bool LineQueue::stopped() const {
  const Lock lock(mutex_);
  return stopped_;
}

void LineQueue::rethrow() const {
  const Lock lock(mutex_);
  if (error_) std::rethrow_exception(error_);
}

}  // namespace gloss::decode
