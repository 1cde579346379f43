# SPDX-License-Identifier: Apache-2.0
from conan import ConanFile
from conan.tools.system.package_manager import Apt

required_conan_version = ">=2.4"


class SystemIsaL(ConanFile):
    """ISA-L as the distribution packages it; FindISAL.cmake finds it where the distribution put it."""

    name = "isa-l"
    version = "system"
    description = "Intel's library of storage primitives, checksums among them"
    license = "BSD-3-Clause"
    url = "https://github.com/intel/isa-l"
    topics = ("crc", "checksum", "storage")
    package_type = "shared-library"
    settings = "os", "arch", "compiler", "build_type"

    def package_id(self):
        self.info.clear()

    def system_requirements(self):
        Apt(self).install(["libisal-dev"], update=True, check=True)

    def package_info(self):
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.includedirs = []
        self.cpp_info.libdirs = []
        self.cpp_info.bindirs = []
