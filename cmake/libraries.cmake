# Every library comes from Debian 12; nothing is downloaded at build time.
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(HWY REQUIRED)
find_package(dnnl REQUIRED)  # its config needs ocl-icd-opencl-dev
find_package(OpenMP REQUIRED COMPONENTS CXX)  # to hold oneDNN to one thread a call
find_package(ICU REQUIRED COMPONENTS uc)
pkg_check_modules(sentencepiece REQUIRED IMPORTED_TARGET sentencepiece)
if(GLOSS_PICTURES)
  # Heat maps and curves; -DGLOSS_PICTURES=OFF builds without them.
  pkg_check_modules(pangocairo REQUIRED IMPORTED_TARGET pangocairo pangoft2 cairo-svg cairo-pdf)
endif()
if(NOT TARGET hwy::hwy)
  add_library(hwy::hwy ALIAS HWY::HWY)
endif()
