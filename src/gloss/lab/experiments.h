// All experiments of the laboratory, in the order of the theory.
#pragma once

#include "gloss/lab/add_norm.h"
#include "gloss/lab/additive.h"
#include "gloss/lab/additive_to_dot.h"
#include "gloss/lab/complexity.h"
#include "gloss/lab/dot_product.h"
#include "gloss/lab/feed_forward.h"
#include "gloss/lab/kernel_regression.h"
#include "gloss/lab/kv_cache.h"
#include "gloss/lab/masks.h"
#include "gloss/lab/multi_head.h"
#include "gloss/lab/output_layer.h"
#include "gloss/lab/positions.h"
#include "gloss/lab/saturation.h"
#include "gloss/lab/scaling.h"
#include "gloss/lab/self_cross.h"
#include "gloss/lab/teacher_forcing.h"

namespace gloss::lab {

// Calls visit.operator()<Experiment>() for each.
template <class Visitor>
void for_each_experiment(Visitor&& visit) {
  visit.template operator()<KernelRegression>();
  visit.template operator()<Additive>();
  visit.template operator()<AdditiveToDot>();
  visit.template operator()<DotProduct>();
  visit.template operator()<Scaling>();
  visit.template operator()<Saturation>();
  visit.template operator()<Masks>();
  visit.template operator()<MultiHead>();
  visit.template operator()<SelfCross>();
  visit.template operator()<Positions>();
  visit.template operator()<FeedForward>();
  visit.template operator()<AddNorm>();
  visit.template operator()<TeacherForcing>();
  visit.template operator()<OutputLayer>();
  visit.template operator()<KvCache>();
  visit.template operator()<Complexity>();
}

}  // namespace gloss::lab
