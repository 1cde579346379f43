# SPDX-License-Identifier: Apache-2.0
from conan import ConanFile
from conan.tools.system.package_manager import Apt

required_conan_version = ">=2.4"


class SystemXxHash(ConanFile):
    """xxHash as the distribution packages it, of which ferry needs the header; find_path() finds it where the distribution put it."""

    name = "xxhash"
    version = "system"
    description = "Fast hashes of bytes"
    license = "BSD-2-Clause"
    url = "https://github.com/Cyan4973/xxHash"
    topics = ("hash", "digest")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"

    def package_id(self):
        self.info.clear()

    def system_requirements(self):
        Apt(self).install(["libxxhash-dev"], update=True, check=True)

    def package_info(self):
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.includedirs = []
        self.cpp_info.libdirs = []
        self.cpp_info.bindirs = []
