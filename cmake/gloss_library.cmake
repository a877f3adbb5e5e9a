set(GLOSS_LIBRARIES "")

add_library(gloss_options INTERFACE)
target_compile_options(gloss_options INTERFACE -Wall -Wextra -Wshadow -Wno-psabi
  # A product and a sum must round the same on every instruction set: only explicit fused operations fuse.
  -ffp-contract=off)
if(GLOSS_WERROR)
  target_compile_options(gloss_options INTERFACE -Werror)
endif()
if(GLOSS_SANITIZE)
  # Line numbers are all a report needs; tracking variables through the kernels takes the compiler minutes a file.
  add_compile_options(-fsanitize=${GLOSS_SANITIZE} -fno-omit-frame-pointer -O1 -g1)
  add_link_options(-fsanitize=${GLOSS_SANITIZE})
endif()

# gloss_library(folder [DEPENDS folders...] [LIBRARIES public libraries...] [PRIVATE libraries...])
# Makes the target gloss_<folder> from src/gloss/<folder>/*.cc.
function(gloss_library folder)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LIBRARIES;PRIVATE" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/gloss/${folder}/*.cc)
  set(name gloss_${folder})
  if(sources)
    add_library(${name} STATIC ${sources})
    set(scope PUBLIC)
    target_link_libraries(${name} PRIVATE $<BUILD_INTERFACE:gloss_options> ${ARG_PRIVATE})
  else()
    add_library(${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  set_target_properties(${name} PROPERTIES EXPORT_NAME ${folder})
  target_compile_features(${name} ${scope} cxx_std_20)
  target_include_directories(${name} ${scope}
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${name} ${scope} ${ARG_LIBRARIES})
  foreach(dependency ${ARG_DEPENDS})
    target_link_libraries(${name} ${scope} gloss_${dependency})
  endforeach()
  set(GLOSS_LIBRARIES ${GLOSS_LIBRARIES} ${name} PARENT_SCOPE)
endfunction()
