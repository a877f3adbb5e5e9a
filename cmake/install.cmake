# cmake --install: the program, the headers, the static libraries and the CMake package that find_package(gloss)
# finds. examples/embed shows its use and tests/packaging tries it.
include(CMakePackageConfigHelpers)
set(gloss_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/gloss)

install(TARGETS gloss RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY src/gloss DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} 
  FILES_MATCHING PATTERN "*.h" PATTERN "*-inl.h" EXCLUDE)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

install(TARGETS gloss_all ${GLOSS_LIBRARIES} EXPORT gloss_targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT gloss_targets FILE glossTargets.cmake NAMESPACE gloss:: DESTINATION ${gloss_package_dir})

configure_package_config_file(cmake/glossConfig.cmake.in ${PROJECT_BINARY_DIR}/glossConfig.cmake
  INSTALL_DESTINATION ${gloss_package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/glossConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/glossConfig.cmake ${PROJECT_BINARY_DIR}/glossConfigVersion.cmake
  DESTINATION ${gloss_package_dir})
