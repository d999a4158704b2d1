#!/bin/sh
# Sets up CPython for Windows under Wine: setup.sh FOLDER REQUIREMENTS PYTHON. If this machine cannot
# have it, one line says why and it ends with 3. Everything comes from Debian and PyPI:
#   - python311.dll and the extension modules, signed by the Python Software Foundation, lie in the
#     wheel of panda3d; the modules in Python are those of PYTHON, which must be of the same version;
#   - python.exe, python3.dll (for wheels of the stable ABI) and a DLL that Wine 8 lacks are made here.
set -eu
folder=$(mkdir -p "$1" && cd "$1" && pwd) requirements=$2 python=$3
VERSION=3.11.7
SIGNED=5ecda62f6fd2822355c560412f6d90be46a7f763f0ffeec9854177904632ac2d  # its python311.dll

lacking() { echo "no Windows here: $*"; exit 3; }

version=$("$python" -c 'import platform; print(platform.python_version())')
test "$version" = "$VERSION" || lacking "the DLL is of Python $VERSION, and $python of $version"
cc=x86_64-w64-mingw32-gcc
wine=/usr/lib/wine/wine64
if ! { command -v $cc && command -v unzip && test -x $wine; } >/dev/null; then
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends \
        wine wine64 gcc-mingw-w64-x86-64-win32 unzip locales; } >/dev/null 2>&1 ||
        lacking "wine64, mingw-w64 and unzip cannot be installed"
fi
wheels() {
    "$python" -m pip download -q --no-deps --platform win_amd64 --python-version 3.11 \
        --only-binary :all: "$@" 2>/dev/null || lacking "pip cannot have $*"
}

home=$folder/python
rm -rf "$home" "$folder/prefix"
mkdir -p "$home/DLLs" "$folder/wheels"
wheels -d "$folder/panda" panda3d==1.10.14
unzip -qojd "$home/DLLs" "$folder"/panda/*.whl 'deploy_libs/*' \
    -x '*/api-ms-*' '*/VCRUNTIME*' '*/t*86t.dll'
mv "$home/DLLs/python311.dll" "$home/"
echo "$SIGNED  $home/python311.dll" | sha256sum -c --quiet
cp -rL "$("$python" -c 'import os; print(os.path.dirname(os.__file__))')" "$home/Lib"
(cd "$home/Lib" && rm -rf test lib-dynload config-* ./*-packages && mkdir site-packages)
wheels -d "$folder/wheels" -r "$requirements"
for wheel in "$folder"/wheels/*.whl; do unzip -qod "$home/Lib/site-packages" "$wheel"; done
rm -rf "$folder/panda" "$folder/wheels"

cd "$home"
$cc -municode -O1 -s -o python.exe -x c - <<'C'
#include <windows.h>
int wmain(int argc, wchar_t **argv)
{
    HMODULE library = LoadLibraryW(L"python311.dll");
    int (*run)(int, wchar_t **) = library ? (void *)GetProcAddress(library, "Py_Main") : 0;
    return run ? run(argc, argv) : 120;
}
C
# Programs in Rust take random bytes from it.
$cc -shared -O1 -s -o bcryptprimitives.dll -x c - -ladvapi32 <<'C'
#include <windows.h>
BOOLEAN WINAPI SystemFunction036(PVOID, ULONG);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T size)
{
    return SystemFunction036(data, (ULONG)size);
}
C
{
    printf 'LIBRARY python3.dll\nEXPORTS\n'
    x86_64-w64-mingw32-objdump -p python311.dll |
        awk '/Ordinal\/Name Pointer/ {on = 1} on && $NF ~ /^_?Py/ {print $NF " = python311." $NF}'
} >python3.def
$cc -shared -nostdlib -s -o python3.dll python3.def 2>/dev/null

# Wine takes the code page from the locale.
mkdir -p "$folder/locales"
for name in zh_TW zh_CN ru_RU; do
    localedef -i "$name" -f UTF-8 "$folder/locales/$name.UTF-8" 2>/dev/null || true
done

# The standard streams must be pipes: with a plain file, Python does not start under Wine 8.
cat >"$folder/python.sh" <<SH
#!/bin/sh
export WINEPREFIX='$folder/prefix' WINEDEBUG=-all
exec $wine '$home/python.exe' "\$@"
SH
chmod +x "$folder/python.sh"
WINEPREFIX=$folder/prefix WINEDEBUG=-all WINEDLLOVERRIDES='mscoree,mshtml=' \
    $wine wineboot -i >/dev/null 2>&1 || true
"$folder/python.sh" -c 'import asyncio, sqlite3, ssl' </dev/null 2>&1 | cat >"$folder/start.log"
test ! -s "$folder/start.log" || lacking "Python does not start under Wine: $(tail -n 1 "$folder/start.log")"
