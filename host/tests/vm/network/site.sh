# Makes /srv/site, which the test serves, and /srv/project, which needs it.
set -e
mkdir -p /srv/site /srv/project/src /srv/project/.cargo
cd /srv/site
echo hello >hello
git config --global user.name test
git config --global user.email test@example.org
git config --global init.defaultBranch main

git init -q /tmp/demo
(cd /tmp/demo && echo hello >hello && git add . && git commit -qm demo)
git clone -q --bare /tmp/demo demo.git
(cd demo.git && git update-server-info)

python3 - <<'PYTHON'
import gzip, hashlib, io, json, os, subprocess, tarfile, zipfile

def write(path, data):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)

def archive(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()

# An index of Python packages.
os.makedirs("simple/demo")
wheel = "demo-1.0-py3-none-any.whl"
with zipfile.ZipFile("simple/demo/" + wheel, "w") as files:
    files.writestr("demo.py", "text = 'hello'\n")
    files.writestr("demo-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n")
    files.writestr("demo-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    files.writestr("demo-1.0.dist-info/RECORD", "demo.py,,\ndemo-1.0.dist-info/METADATA,,\ndemo-1.0.dist-info/WHEEL,,\ndemo-1.0.dist-info/RECORD,,\n")
write("simple/demo/index.html", f'<a href="{wheel}">{wheel}</a>'.encode())

# A repository of Debian packages.
packages = b"Package: demo\nVersion: 1.0\nArchitecture: all\nMaintainer: test\nFilename: ./demo.deb\nSize: 1\nSHA256: " + b"0" * 64 + b"\nDescription: demo\n"
write("apt/Packages", packages)
digest = hashlib.sha256(packages).hexdigest()
write("apt/Release", f"Date: Thu, 01 Jan 2026 00:00:00 UTC\nSHA256:\n {digest} {len(packages)} Packages\n".encode())

# A registry of npm.
manifest = {"name": "demo", "version": "1.0.0", "main": "index.js"}
tarball = archive({"package/package.json": json.dumps(manifest), "package/index.js": "module.exports = 'hello'\n"})
write("npm/-/demo-1.0.0.tgz", tarball)
manifest["dist"] = {"tarball": "http://npm.test:@PORT@/npm/-/demo-1.0.0.tgz", "shasum": hashlib.sha1(tarball).hexdigest()}
write("npm/demo", json.dumps({"name": "demo", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": manifest}}).encode())

# A registry of cargo.
crate = archive({
    "demo-1.0.0/Cargo.toml": '[package]\nname = "demo"\nversion = "1.0.0"\nedition = "2021"\n',
    "demo-1.0.0/src/lib.rs": 'pub const TEXT: &str = "hello";\n',
})
write("crates/demo/1.0.0/download", crate)
write("/tmp/index/config.json", json.dumps({"dl": "http://crates.test:@PORT@/crates", "api": None}).encode())
entry = {"name": "demo", "vers": "1.0.0", "deps": [], "cksum": hashlib.sha256(crate).hexdigest(), "features": {}, "yanked": False}
write("/tmp/index/de/mo/demo", (json.dumps(entry) + "\n").encode())
PYTHON

git init -q /tmp/index
(cd /tmp/index && git add . && git commit -qm index)
git clone -q --bare /tmp/index index.git
(cd index.git && git update-server-info)

cat >/srv/project/Cargo.toml <<'TOML'
[package]
name = "project"
version = "1.0.0"
edition = "2021"

[dependencies]
demo = { version = "1", registry = "test" }
TOML
echo 'fn main() { println!("{}", demo::TEXT) }' >/srv/project/src/main.rs
cat >/srv/project/.cargo/config.toml <<'TOML'
[registries.test]
index = "http://crates.test:@PORT@/index.git"

[net]
git-fetch-with-cli = true
TOML
