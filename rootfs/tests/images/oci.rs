//! Images of containers that real tools have made: `umoci` and `skopeo`.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use vmcell_rootfs::oci::{ImageProblem, ImageSource, OciImage};
use vmcell_rootfs::{Content, Error, Kind, Ownership, Recipe as _, Size, Tree};

use crate::inspect::{Inspect, assert_identical};

/// A folder with a layout of OCI, in which `umoci` makes images.
pub(crate) struct Layout(TempDir);

impl Layout {
    fn new() -> Self {
        let layout = Self(TempDir::new().unwrap());
        layout.umoci(&["init", "--layout", "image"]);
        layout.umoci(&["new", "--image", "image:empty"]);
        layout
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn run(&self, program: &str, arguments: &[&str]) {
        let output = Command::new(program)
            .args(arguments)
            .current_dir(self.0.path())
            .output()
            .expect("`make vsock` installs what the tests need, umoci and skopeo, too");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {arguments:?}: {errors}");
    }

    fn umoci(&self, arguments: &[&str]) {
        self.run("umoci", arguments);
    }

    /// Adds a layer to an image, with what a function changes in its tree.
    pub(crate) fn layer(&self, from: &str, to: &str, change: impl FnOnce(&Path)) {
        let bundle = format!("bundle-{to}");
        self.unpack(from, &bundle);
        change(&self.path(&bundle).join("rootfs"));
        let image = format!("image:{to}");
        self.umoci(&["repack", "--image", &image, &bundle]);
    }

    /// Unpacks an image, and returns its tree.
    fn unpack(&self, tag: &str, bundle: &str) -> PathBuf {
        let image = format!("image:{tag}");
        let mut arguments = vec!["unpack", "--image", &image, bundle];
        if !rustix::process::geteuid().is_root() {
            arguments.insert(1, "--rootless");
        }
        self.umoci(&arguments);
        self.path(bundle).join("rootfs")
    }

    /// Three layers: the second removes, replaces and links, the third only adds.
    pub(crate) fn with_layers() -> Self {
        let layout = Self::new();
        layout.layer("empty", "one", |root| {
            fs::create_dir_all(root.join("usr/lib/deep")).unwrap();
            fs::create_dir_all(root.join("removed/below")).unwrap();
            symlink("usr/lib", root.join("lib")).unwrap();
            symlink("/etc/absolute", root.join("absolute")).unwrap();
            fs::write(root.join("usr/lib/library"), "first").unwrap();
            fs::hard_link(root.join("usr/lib/library"), root.join("usr/lib/same")).unwrap();
            fs::write(root.join("removed/below/file"), "gone").unwrap();
            fs::write(root.join("replaced"), "old").unwrap();
            let long = "n".repeat(200);
            fs::write(root.join(&long), "a long name").unwrap();
            fs::write(root.join("usr/lib/deep/ä ö"), [0xff, 0]).unwrap();
            let sparse = fs::File::create(root.join("sparse")).unwrap();
            sparse.set_len(3 << 20).unwrap();
            if rustix::process::geteuid().is_root() {
                let nobody = Some(65534);
                std::os::unix::fs::chown(root.join("replaced"), nobody, nobody).unwrap();
                let device = rustix::fs::makedev(1, 3);
                let kind = rustix::fs::FileType::CharacterDevice;
                let mode = rustix::fs::Mode::from_raw_mode(0o666);
                rustix::fs::mknodat(rustix::fs::CWD, root.join("null"), kind, mode, device)
                    .unwrap();
            }
        });
        layout.layer("one", "two", |root| {
            fs::remove_dir_all(root.join("removed")).unwrap();
            fs::remove_file(root.join("usr/lib/library")).unwrap();
            fs::remove_file(root.join("replaced")).unwrap();
            fs::create_dir(root.join("replaced")).unwrap();
            fs::write(root.join("replaced/inside"), "new").unwrap();
            fs::hard_link(root.join("usr/lib/same"), root.join("linked")).unwrap();
        });
        layout.layer("two", "three", |root| {
            fs::write(root.join("lib/added"), "through a link").unwrap();
        });
        layout.umoci(&[
            "config",
            "--image=image:three",
            "--config.user=65534:65534",
            "--config.env=A=b c",
            "--config.workingdir=/usr/lib",
            "--config.entrypoint=/bin/program",
            "--config.cmd=first",
            "--config.cmd=second",
            "--config.exposedports=8080/tcp",
            "--config.label=made=by umoci",
        ]);
        layout
    }

    pub(crate) fn open(&self, text: &str) -> Result<OciImage, Error> {
        let (kind, path) = text.split_once(':').unwrap();
        let text = format!("{kind}:{}", self.path(path).display());
        OciImage::open(&ImageSource::parse(OsStr::new(&text)).unwrap())
    }
}

/// What a tree has, in a form in which two can be compared.
pub(crate) fn describe(tree: &Tree) -> BTreeMap<PathBuf, String> {
    // A file with several names is that of the first, whichever the tree has chosen.
    let mut first = BTreeMap::new();
    for (path, node) in tree.iter() {
        if let Kind::HardLink(target) = &node.kind {
            let target = target.strip_prefix("/").unwrap_or(target);
            let known = first
                .entry(target.to_owned())
                .or_insert_with(|| target.to_owned());
            if *path < **known {
                *known = path.to_owned();
            }
        }
    }
    let entries = tree.iter().map(|(path, node)| {
        let target = match &node.kind {
            Kind::HardLink(target) => target.strip_prefix("/").unwrap_or(target),
            _ => path,
        };
        let node = tree.get(target).unwrap();
        let kind = match &node.kind {
            Kind::File(Content::HostFile(file)) => {
                let bytes = fs::read(file).unwrap();
                let zeros = bytes.iter().all(|&byte| byte == 0);
                match zeros {
                    true => format!("{} zeros", bytes.len()),
                    false => format!("{:?}", String::from_utf8_lossy(&bytes)),
                }
            }
            other => format!("{other:?}"),
        };
        let owner = node.owner;
        let names = first.get(target);
        let text = format!(
            "{kind} {:o} {owner:?} {:?} {:?} {names:?}",
            node.mode, node.modified, node.xattrs
        );
        (path.to_owned(), text)
    });
    entries.collect()
}

#[test]
fn an_image_is_what_umoci_unpacks() {
    let layout = Layout::with_layers();
    let image = layout.open("oci:image:three").unwrap();
    let unpacked = Tree::from_dir_with(layout.unpack("three", "result"), Ownership::Keep);
    let mut expected = describe(&unpacked.unwrap());
    let mut found = describe(&image.tree().unwrap());
    // The root is in no layer of an empty image.
    expected.remove(Path::new(""));
    found.remove(Path::new(""));
    assert_eq!(found, expected);

    let defaults = image.defaults();
    assert_eq!(defaults.user.as_deref(), Some("65534:65534"));
    assert!(defaults.env.contains(&"A=b c".to_owned()), "{defaults:?}");
    assert_eq!(defaults.working_dir.as_deref(), Some("/usr/lib"));
    assert_eq!(defaults.exposed_ports, ["8080/tcp"]);
    assert_eq!(defaults.labels["made"], "by umoci");
    let line = defaults.command_line(&[]);
    assert_eq!(line, ["/bin/program", "first", "second"]);
    let line = defaults.command_line(&["other".to_owned()]);
    assert_eq!(line, ["/bin/program", "other"]);
}

#[test]
fn the_same_image_gives_the_same_disk_however_it_is_packed() {
    let layout = Layout::with_layers();
    for arguments in [
        &["copy", "oci:image:three", "oci-archive:oci.tar:three"][..],
        &[
            "copy",
            "oci:image:three",
            "docker-archive:docker.tar:some/name:tag",
        ],
    ] {
        layout.run("skopeo", arguments);
    }
    let build = |image: &OciImage, name: &str| {
        let builder = image.image_builder().size(Size::Fit { headroom: 0 });
        let disk = builder.build(&image.tree().unwrap(), layout.path(name));
        disk.unwrap().path
    };
    let first = layout.open("oci:image:three").unwrap();
    let disk = build(&first, "first.ext4");
    Inspect(disk.clone()).assert_clean();
    for source in ["oci-archive:oci.tar", "docker-archive:docker.tar"] {
        let image = layout.open(source).unwrap();
        assert_eq!(image.id(), first.id(), "{source}");
        assert_identical(&disk, &build(&image, "again.ext4"));
    }
    let named = layout
        .open("docker-archive:docker.tar:docker.io/some/name:tag")
        .unwrap();
    assert_eq!(named.id(), first.id());
}

fn problem(result: Result<OciImage, Error>) -> ImageProblem {
    match result {
        Err(Error::Image { problem, .. }) => problem,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_no_image_is_refused_with_a_reason() {
    let layout = Layout::with_layers();
    let several = problem(layout.open("oci:image"));
    assert!(several.to_string().contains("three"), "{several}");
    let none = problem(layout.open("oci:image:four"));
    assert!(none.to_string().contains("no image \"four\""), "{none}");
    for (source, said) in [
        ("oci:nowhere", "no index.json"),
        ("oci-archive:nowhere", "nowhere"),
        ("docker-archive:image", "image"),
        ("oci-archive:image/index.json", "no tar archive"),
    ] {
        let error = problem(layout.open(source)).to_string();
        assert!(error.contains(said), "{source}: {error}");
    }
    fs::write(layout.path("image/index.json"), "{").unwrap();
    assert!(matches!(
        problem(layout.open("oci:image")),
        ImageProblem::Document {
            document: "index",
            ..
        }
    ));
}

#[test]
fn each_changed_blob_is_found() {
    let layout = Layout::with_layers();
    let folder = layout.path("image/blobs/sha256");
    let read = |image: Result<OciImage, Error>| image.and_then(|image| image.tree());
    for blob in fs::read_dir(&folder).unwrap() {
        let blob = blob.unwrap().path();
        let whole = fs::read(&blob).unwrap();
        let is_used = {
            fs::remove_file(&blob).unwrap();
            read(layout.open("oci:image:three")).is_err()
        };
        let mut longer = whole.clone();
        longer.push(0);
        let mut changed = whole.clone();
        *changed.last_mut().unwrap() ^= 1;
        for bytes in [&whole[..whole.len() - 1], &longer, &changed, b""] {
            fs::write(&blob, bytes).unwrap();
            let result = read(layout.open("oci:image:three"));
            assert_eq!(result.is_err(), is_used, "{}", blob.display());
            if let Err(error) = result {
                assert!(matches!(error, Error::Image { .. }), "{error:?}");
            }
        }
        fs::write(&blob, whole).unwrap();
    }
    assert!(read(layout.open("oci:image:three")).is_ok());
}
