#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Unpacks a Debian or Ubuntu package into a folder, from a suite that the machine need not have configured.

    debian_package.py --package libcatch2-dev --minimum 3 --suite bookworm-backports --destination DIR

apt runs with its own state, cache and list of sources, so nothing of the machine changes, and it needs no root. The mirror
is the one that the machine's own sources name; its signatures are checked with the machine's own keys.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


class NotAvailable(Exception):
    pass


def run(command, cwd=None):
    """The command's output; its own words where it fails."""
    environment = os.environ | {"LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(command, cwd=cwd, text=True, errors="replace", env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    if done.returncode != 0:
        raise NotAvailable(f"{' '.join(map(str, command))} failed:\n{done.stdout}")
    return done.stdout


def os_release():
    lines = Path("/etc/os-release").read_text(encoding="utf-8").splitlines()
    return {key: value.strip('"') for key, _, value in (line.partition("=") for line in lines)}


def mirror():
    """The address and the main component of the machine's own release, as apt itself understands its sources."""
    if not shutil.which("apt-get"):
        raise NotAvailable("this machine has no apt-get")
    codename = os_release().get("VERSION_CODENAME", "")
    listed = run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)", "Created-By: Packages"])
    sources = [line.split() for line in listed.splitlines() if len(line.split()) == 2]
    for uri, release in sources:
        if release == codename:
            return uri
    raise NotAvailable(f"apt's sources do not list the release {codename!r}")


def candidate(package, options):
    """The version that apt would take, '' where it knows none."""
    for line in run(["apt-cache", *options, "policy", package]).splitlines():
        if line.strip().startswith("Candidate:"):
            version = line.split()[1]
            return "" if version == "(none)" else version
    return ""


def new_enough(version, minimum):
    return bool(version) and subprocess.run(["dpkg", "--compare-versions", version, "ge", minimum]).returncode == 0


def unpack(package, minimum, suites, destination):
    """Unpacks the package from the first suite that has it in the version asked for; returns the version."""
    uri = mirror()
    components = "main universe" if os_release().get("ID") == "ubuntu" else "main"
    refused = []
    for suite in suites:
        with tempfile.TemporaryDirectory(prefix="apt-") as scratch:
            folder = Path(scratch)
            for name in ("state/lists/partial", "cache/archives/partial"):
                (folder / name).mkdir(parents=True)
            (folder / "sources.list").write_text(f"deb {uri} {suite} {components}\n", encoding="utf-8")
            settings = {
                "Dir::State": folder / "state",
                "Dir::State::status": "/var/lib/dpkg/status",
                "Dir::Cache": folder / "cache",
                "Dir::Etc::sourcelist": folder / "sources.list",
                "Dir::Etc::sourceparts": "-",
                "Dir::Etc::preferences": "-",
                "Dir::Etc::preferencesparts": "-",
                "APT::Sandbox::User": "root",
                "APT::Get::List-Cleanup": "0",
                "Acquire::Languages": "none",
                "Acquire::Retries": "3",
            }
            options = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
            try:
                run(["apt-get", *options, "update", "--error-on=any"])
                version = candidate(package, options)
                if not new_enough(version, minimum):
                    refused.append(f"{suite}: {package} {version or 'is missing'}")
                    continue
                run(["apt-get", *options, "download", f"{package}={version}"], cwd=folder)
                archive = next(folder.glob("*.deb"))
                Path(destination).mkdir(parents=True, exist_ok=True)
                run(["dpkg-deb", "-x", archive, destination])
                return version
            except NotAvailable as error:
                refused.append(f"{suite}: {error}")
    raise NotAvailable(f"no suite has {package} {minimum} or later:\n" + "\n".join(refused))


def default_suites():
    codename = os_release().get("VERSION_CODENAME", "")
    return [f"{codename}-backports", codename]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", required=True)
    parser.add_argument("--minimum", required=True, help="oldest version that will do")
    parser.add_argument("--suite", action="append", help="suites in order; default: the release's backports, the release")
    parser.add_argument("--destination", required=True)
    arguments = parser.parse_args()
    try:
        suites = arguments.suite or default_suites()
        version = unpack(arguments.package, arguments.minimum, suites, Path(arguments.destination).resolve())
    except NotAvailable as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{arguments.package} {version}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
