#include "gloss/evaluate/symmetrise.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "gloss/base/error.h"

namespace gloss::evaluate {
namespace {

// A link in the order of the walk: target before source.
using Point = std::pair<int32_t, int32_t>;  // target, source

std::vector<Point> points_of(const Alignment& alignment) {
  std::vector<Point> points;
  points.reserve(alignment.size());
  for (const Link& link : alignment) {
    require(
        link.source >= 0 && link.source <= kHighestWord && link.target >= 0 && link.target <= kHighestWord,
        "the link {}-{} is none: words have numbers from 0 to {}", link.source, link.target, kHighestWord);
    points.emplace_back(link.target, link.source);
  }
  std::ranges::sort(points);
  return points;
}

// The links so far, and which words have one.
class Growing {
 public:
  Growing(std::vector<Point> points, std::vector<Point> all)
      : points_(points.begin(), points.end()), union_(std::move(all)) {
    for (const auto& [target, source] : union_) {
      target_linked_.resize(std::max(target_linked_.size(), static_cast<size_t>(target) + 1));
      source_linked_.resize(std::max(source_linked_.size(), static_cast<size_t>(source) + 1));
    }
    for (const Point& point : points_) mark(point);
  }

  void grow() {
    constexpr Point kNeighbours[] = {{-1, 0}, {0, -1}, {1, 0}, {0, 1}, {-1, -1}, {-1, 1}, {1, -1}, {1, 1}};
    for (bool added = true; added;) {
      added = false;
      // A set: what is put in behind `point` is met in this round, what is put in before it in the next.
      for (const Point& point : points_) {
        for (const Point& step : kNeighbours) {
          const Point next{point.first + step.first, point.second + step.second};
          if (!std::ranges::binary_search(union_, next) || both_linked(next)) continue;
          add(next);
          added = true;
        }
      }
    }
  }

  // Adds those of `offered` that reach a word without a link, or only those between two such words.
  void finish(const std::vector<Point>& offered, bool both_without) {
    for (const Point& point : offered) {
      if (both_without ? !either_linked(point) : !both_linked(point)) add(point);
    }
  }

  Alignment alignment() const {
    std::vector<Link> links;
    for (const auto& [target, source] : points_) links.push_back({source, target});
    return in_order(std::move(links));
  }

 private:
  bool target_linked(const Point& point) const { return target_linked_[static_cast<size_t>(point.first)]; }
  bool source_linked(const Point& point) const { return source_linked_[static_cast<size_t>(point.second)]; }
  bool both_linked(const Point& point) const { return target_linked(point) && source_linked(point); }
  bool either_linked(const Point& point) const { return target_linked(point) || source_linked(point); }
  void mark(const Point& point) {
    target_linked_[static_cast<size_t>(point.first)] = true;
    source_linked_[static_cast<size_t>(point.second)] = true;
  }
  void add(const Point& point) {
    points_.insert(point);
    mark(point);
  }

  std::set<Point> points_;
  std::vector<Point> union_;  // in order
  std::vector<bool> target_linked_, source_linked_;
};

}  // namespace

Alignment symmetrise(const Alignment& forward, const Alignment& backward, Symmetrisation method) {
  const std::vector<Point> one = points_of(forward), other = points_of(backward);
  std::vector<Point> both, either;
  std::ranges::set_intersection(one, other, std::back_inserter(both));
  std::ranges::set_union(one, other, std::back_inserter(either));
  Growing growing(method == Symmetrisation::union_ ? either : both, either);
  if (method != Symmetrisation::union_ && method != Symmetrisation::intersection) growing.grow();
  if (method == Symmetrisation::grow_diag_final || method == Symmetrisation::grow_diag_final_and) {
    const bool both_without = method == Symmetrisation::grow_diag_final_and;
    growing.finish(one, both_without);
    growing.finish(other, both_without);
  }
  return growing.alignment();
}

}  // namespace gloss::evaluate
