# SPDX-License-Identifier: Apache-2.0
from conan import ConanFile
from conan.tools.system.package_manager import Apt

required_conan_version = ">=2.4"


class SystemNlohmannJson(ConanFile):
    """nlohmann-json as the distribution packages it; find_package() finds it where the distribution put it."""

    name = "nlohmann_json"
    version = "system"
    description = "JSON for C++"
    license = "MIT"
    url = "https://github.com/nlohmann/json"
    topics = ("json", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"

    def package_id(self):
        self.info.clear()

    def system_requirements(self):
        Apt(self).install(["nlohmann-json3-dev"], update=True, check=True)

    def package_info(self):
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.includedirs = []
        self.cpp_info.libdirs = []
        self.cpp_info.bindirs = []
