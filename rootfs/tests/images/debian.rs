//! The recipe `debian`: with a fake `mmdebstrap`, and once with the real one.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use vmcell_rootfs::{Cache, Error, Origin, Progress, Size, Stage, Tools, recipe};

use crate::inspect::{Inspect, assert_identical, files_in, install_program};

/// A folder with a program named `mmdebstrap`.
struct FakeMmdebstrap(TempDir);

impl FakeMmdebstrap {
    /// Creates one that runs this shell script.
    fn new(script: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let script = format!("#!/bin/sh\ncd '{}'\n{script}\n", folder.path().display());
        install_program(&folder.path().join("mmdebstrap"), script.as_bytes());
        Self(folder)
    }

    /// Creates one that writes a small archive to stdout, as the real one would.
    fn small() -> Self {
        let fake = Self::new(
            "printf '%s\\n' \"$@\" > arguments; env > environment\n\
             echo 'I: downloading packages with apt...' >&2\n\
             echo 'I: creating tarball...' >&2\n\
             cat archive",
        );
        let root = fake.0.path().join("root");
        for (path, text) in [
            ("etc/passwd", "root:*:0:0:root:/root:/bin/bash\n"),
            ("etc/group", "root:*:0:\n"),
            ("etc/hostname", "the-host\n"),
            ("etc/resolv.conf", "nameserver 192.0.2.1\n"),
            ("etc/skel/.bashrc", "PS1='> '\n"),
            ("etc/apt/sources.list", "deb http://mirror.example/ x y\n"),
            ("usr/share/doc/tool/README", "long\n"),
        ] {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let packed = Command::new("tar")
            .args(["--create", "--owner=:0", "--group=:0", "--mtime=@0"])
            .args([
                "--sort=name",
                "--mode=u=rwX,go=rX",
                "--file=../archive",
                ".",
            ])
            .current_dir(&root)
            .status();
        assert!(packed.unwrap().success());
        fake
    }

    fn recipe(&self) -> recipe::Debian {
        let system = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(Path::new);
        recipe::debian()
            .tools(Tools::in_folders([self.0.path()].into_iter().chain(system)))
            .mirror("http://mirror.example/debian")
            .size(Size::Fit { headroom: 0 })
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.path().join(name)).unwrap()
    }
}

#[test]
fn nothing_of_the_host_and_something_for_cell_is_in_the_image() {
    let fake = FakeMmdebstrap::small();
    let folder = TempDir::new().unwrap();
    let mut reports: Vec<Progress> = Vec::new();
    let image = Cache::at(folder.path())
        .image_with(&fake.recipe(), |progress| reports.push(progress))
        .unwrap();
    assert!(reports.is_sorted_by(|a, b| a.fraction <= b.fraction && a.stage <= b.stage));
    let gathering = reports
        .iter()
        .filter(|report| report.stage == Stage::Gather);
    assert_eq!(gathering.count(), 3, "the beginning and two steps");

    let image = Inspect(image.path);
    image.assert_clean();
    let passwd = image.cat("/etc/passwd");
    assert!(passwd.starts_with("root:*:0:0:"), "{passwd}");
    assert!(passwd.ends_with("\ncell:*:1000:1000:cell:/home/cell:/bin/bash\n"));
    assert!(image.cat("/etc/group").contains("\ncell:*:1000:\n"));
    assert_eq!(image.cat("/etc/hostname"), "vmcell\n");
    assert_eq!(image.cat("/home/cell/.bashrc"), "PS1='> '\n");
    for path in ["/home/cell", "/workspace"] {
        assert_eq!(image.entry(path), "040755 1000 1000");
    }
    assert_eq!(image.entry("/home/cell/.bashrc"), "100644 1000 1000");
    assert_eq!(image.entry("/etc/skel/.bashrc"), "100644 0 0");
    assert_eq!(image.cat("/etc/resolv.conf"), "");
    assert!(
        !image
            .names("/etc/apt")
            .iter()
            .any(|name| name == b"sources.list")
    );
    let sources = image.cat("/etc/apt/sources.list.d/debian.sources");
    assert!(!sources.contains("mirror.example"), "{sources}");
    assert!(image.names("/usr/share").is_empty());

    let arguments = fake.read("arguments");
    assert!(arguments.contains("\nbookworm\n-\nhttp://mirror.example/debian\n"));
    let environment = fake.read("environment");
    assert!(environment.contains("SOURCE_DATE_EPOCH=1735689600\n"));
    assert!(!environment.contains("CARGO"), "{environment}");
}

#[test]
fn equal_packages_give_equal_images() {
    let (first, second) = (FakeMmdebstrap::small(), FakeMmdebstrap::small());
    let images = [first, second].map(|fake| {
        let folder = TempDir::new().unwrap();
        let image = Cache::at(folder.path()).image(&fake.recipe()).unwrap();
        (folder, image)
    });
    assert_eq!(images[0].1.digest, images[1].1.digest);
    assert_identical(&images[0].1.path, &images[1].1.path);
}

#[test]
fn a_finished_image_is_found_without_mmdebstrap() {
    let fake = FakeMmdebstrap::small();
    let folder = TempDir::new().unwrap();
    let cache = Cache::at(folder.path());
    cache.image(&fake.recipe()).unwrap();
    fs::remove_file(fake.0.path().join("mmdebstrap")).unwrap();
    let found = cache.image(&fake.recipe()).unwrap();
    assert_eq!(found.origin, Origin::Found);

    let elsewhere = fake.recipe().mirror("http://other.example/debian");
    assert_eq!(cache.lookup(&elsewhere).unwrap(), None);
    let larger = fake.recipe().packages(["git"]);
    assert_eq!(cache.lookup(&larger).unwrap(), None);
}

#[test]
fn those_who_want_the_same_image_wait_for_one() {
    let fake = FakeMmdebstrap::small();
    let folder = TempDir::new().unwrap();
    let barrier = std::sync::Barrier::new(3);
    let origins = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    barrier.wait();
                    let cache = Cache::at(folder.path());
                    cache.image(&fake.recipe()).unwrap().origin
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect::<Vec<_>>()
    });
    let built = origins.iter().filter(|origin| **origin == Origin::Built);
    assert_eq!(built.count(), 1, "{origins:?}");
}

#[test]
fn failures_say_what_to_do_and_leave_nothing() {
    let folder = TempDir::new().unwrap();
    let fail = |recipe: &recipe::Debian| {
        let error = Cache::at(folder.path()).image(recipe).unwrap_err();
        assert_eq!(files_in(folder.path()).len(), 0);
        error
    };
    let missing = recipe::debian().tools(Tools::in_folders(["/usr/sbin", "/sbin"]));
    let error = fail(&missing).to_string();
    assert!(error.contains("apt-get install mmdebstrap"), "{error}");

    let offline = FakeMmdebstrap::new(
        "echo 'I: running apt-get update...' >&2\n\
         echo 'E: cannot reach the mirror' >&2\n\
         echo 'I: removing tempdir' >&2; exit 1",
    );
    let error = fail(&offline.recipe());
    assert!(
        matches!(&error, Error::BootstrapFailed { output } if output == "E: cannot reach the mirror"),
        "{error}"
    );
    assert!(error.to_string().contains("VMCELL_DEBIAN_MIRROR"));

    // A truncated archive and one without `/etc/passwd` fail with different errors.
    let half = FakeMmdebstrap::small();
    let archive = half.0.path().join("archive");
    let bytes = fs::read(&archive).unwrap();
    fs::write(&archive, &bytes[..1000]).unwrap();
    let error = fail(&half.recipe());
    assert!(matches!(error, Error::ArchiveUnreadable { .. }), "{error}");
    fs::write(&archive, [0; 10240]).unwrap();
    let error = fail(&half.recipe());
    assert!(matches!(error, Error::Path { .. }), "{error}");
}

#[test]
fn the_real_one_is_made_once_and_has_what_terminals_need() {
    let image = recipe::debian().cached().unwrap();
    let again = recipe::debian()
        .cached_with(|_| panic!("there is nothing to do"))
        .unwrap();
    assert_eq!(again.origin, Origin::Found);
    let on_disk = fs::metadata(&image.path).unwrap();
    assert!(on_disk.blocks() * 512 < 200 << 20, "{on_disk:?}");

    let image = Inspect(image.path);
    image.assert_clean();
    for program in [
        "/usr/bin/bash",
        "/usr/bin/curl",
        "/usr/bin/htop",
        "/usr/bin/less",
        "/usr/bin/ls",
        "/usr/bin/python3.11",
        "/usr/bin/stty",
        "/usr/bin/top",
        "/usr/bin/vim.tiny",
    ] {
        assert_eq!(image.entry(program), "100755 0 0", "{program}");
    }
    assert!(image.stat("/bin").contains("Fast link dest: \"usr/bin\""));
    assert_eq!(image.entry("/usr/bin/su"), "104755 0 0");
    for file in [
        "/lib/terminfo/x/xterm-256color",
        "/usr/lib/python3.11/pdb.py",
    ] {
        assert!(image.stat(file).contains("Type: regular"), "{file}");
    }
    let readline = image.debugfs("ls -p /usr/lib/python3.11/lib-dynload");
    assert!(readline.contains("/readline.cpython-311-"), "{readline}");
    assert_eq!(image.entry("/workspace"), "040755 1000 1000");
    assert_eq!(image.cat("/etc/hostname"), "vmcell\n");
    assert_eq!(image.cat("/etc/machine-id"), "");
    assert_eq!(image.cat("/etc/resolv.conf"), "");
    assert_eq!(image.names("/etc/apt/sources.list.d"), [b"debian.sources"]);
}
