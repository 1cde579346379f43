# SPDX-License-Identifier: Apache-2.0
include(CMakePackageConfigHelpers)

set(ferry_config_dir "${CMAKE_INSTALL_LIBDIR}/cmake/ferry")

install(
  TARGETS ${ferry_libraries}
  EXPORT ferryTargets
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}"
  FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
# The umbrella header looks for the backends next to itself first, so the project root never is an include directory.
install(DIRECTORY "${PROJECT_SOURCE_DIR}/backends/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/ferry/backends"
        FILES_MATCHING PATTERN "*.hpp")
install(EXPORT ferryTargets NAMESPACE ferry:: DESTINATION "${ferry_config_dir}")

# The Kokkos of the library: its kernels, and the layout of Kokkos' types in its functions, are of this one.
set(ferry_kokkos_version "${Kokkos_VERSION}")
set(ferry_kokkos_devices "${Kokkos_DEVICES}")
set(ferry_kokkos_architectures "${Kokkos_ARCH}")
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/ferryConfig.cmake.in"
                              "${PROJECT_BINARY_DIR}/ferryConfig.cmake" INSTALL_DESTINATION "${ferry_config_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/ferryConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/ferryConfig.cmake" "${PROJECT_BINARY_DIR}/ferryConfigVersion.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/FerryLanguage.cmake" "${PROJECT_SOURCE_DIR}/cmake/FerryInstances.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/FerryNccl.cmake" "${PROJECT_SOURCE_DIR}/cmake/FindISAL.cmake"
        DESTINATION "${ferry_config_dir}")
# The sources of ferry::instances, which the consumer's build compiles.
if(ferry_has_device)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/src/instances" DESTINATION "${ferry_config_dir}" FILES_MATCHING PATTERN "*.[ch]pp")
endif()
