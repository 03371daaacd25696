//! Images contain exactly what their trees describe.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use tempfile::TempDir;
use vmcell_rootfs::{ImageBuilder, Kind, Node, Owner, Ownership, Size, Tree};

use crate::inspect::Inspect;

fn build(tree: &Tree, folder: &TempDir) -> Inspect {
    let builder = ImageBuilder::new().size(Size::Fit { headroom: 0 });
    let image = Inspect(
        builder
            .build(tree, folder.path().join("image"))
            .unwrap()
            .path,
    );
    image.assert_clean();
    image
}

#[test]
fn owners_and_modes_are_as_asked() {
    let folder = TempDir::new().unwrap();
    let mut tree = Tree::new();
    tree.file("/bin/su", 0o4755, "x").unwrap();
    tree.file("/secret", 0o000, "").unwrap();
    tree.directory("/tmp", 0o1777).unwrap();
    tree.directory("/shared", 0o2775).unwrap();
    tree.file("/home/ann/file", 0o640, "hello").unwrap();
    tree.symlink("/home/ann/link", "file").unwrap();
    tree.set_owner(
        "/home/ann",
        Owner {
            uid: 1000,
            gid: 100,
        },
    )
    .unwrap();
    tree.set_owner(
        "/shared",
        Owner {
            uid: 2_000_000_000,
            gid: 70_000,
        },
    )
    .unwrap();
    let image = build(&tree, &folder);

    assert_eq!(image.entry("/bin/su"), "104755 0 0");
    assert_eq!(image.entry("/secret"), "100000 0 0");
    assert_eq!(image.entry("/tmp"), "041777 0 0");
    assert_eq!(image.entry("/shared"), "042775 2000000000 70000");
    assert_eq!(image.entry("/home"), "040755 0 0");
    assert_eq!(image.entry("/home/ann"), "040755 1000 100");
    assert_eq!(image.entry("/home/ann/file"), "100640 1000 100");
    assert_eq!(image.entry("/home/ann/link"), "120777 1000 100");
    assert_eq!(image.cat("/home/ann/file"), "hello");
}

#[test]
fn owners_of_the_host_are_kept_only_on_request() {
    let folder = TempDir::new().unwrap();
    let root = folder.path().join("tree");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("file"), "").unwrap();
    let uid = rustix::process::getuid();
    // Only root can change owners; otherwise the file keeps the user's own id.
    let expected = if uid.is_root() {
        std::os::unix::fs::chown(root.join("file"), Some(1234), Some(5678)).unwrap();
        "100644 1234 5678".to_owned()
    } else {
        format!(
            "100644 {} {}",
            uid.as_raw(),
            rustix::process::getgid().as_raw()
        )
    };
    fs::set_permissions(root.join("file"), fs::Permissions::from_mode(0o644)).unwrap();

    let kept = build(
        &Tree::from_dir_with(&root, Ownership::Keep).unwrap(),
        &folder,
    );
    assert_eq!(kept.entry("/file"), expected);
    let given_to_root = build(&Tree::from_dir(&root).unwrap(), &folder);
    assert_eq!(given_to_root.entry("/file"), "100644 0 0");
}

#[test]
fn a_private_folder_does_not_lock_users_out_of_the_image() {
    let folder = TempDir::new().unwrap();
    let private = TempDir::new().unwrap();
    fs::set_permissions(private.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let image = build(&Tree::from_dir(private.path()).unwrap(), &folder);
    assert!(image.stat("/").contains("Mode:  0755"));
}

#[test]
fn names_survive_whatever_bytes_they_hold() {
    let names: Vec<&[u8]> = vec![
        b" leading and trailing ",
        b"tab\there",
        b"\"quoted\"",
        b"\"",
        b"'",
        b"back\\slash",
        b"-option",
        b"#comment",
        b"!ls",
        b"<2>",
        b"*?[a]",
        b"new\nline",
        b"\nrm keep\n",
        b"carriage\rreturn",
        b"\x01\x1b[31m\x7f",
        b"\xff\xfe not utf-8",
        "ünïcode ✓".as_bytes(),
        b"vmcell-stand-in-0",
        b"~",
        b"...",
        &[b'"'; 255],
        &[b'\n'; 255],
    ];
    let host = TempDir::new().unwrap();
    let wanted: BTreeSet<&[u8]> = names.iter().copied().collect();
    for name in &names {
        let directory = host.path().join("top").join(OsStr::from_bytes(name));
        fs::create_dir_all(directory.join(OsStr::from_bytes(b"in\nner"))).unwrap();
        fs::write(directory.join(OsStr::from_bytes(name)), name).unwrap();
    }
    fs::write(host.path().join("keep"), "kept").unwrap();

    let folder = TempDir::new().unwrap();
    let image = build(&Tree::from_dir(host.path()).unwrap(), &folder);
    assert_eq!(
        image.cat("/keep"),
        "kept",
        "no name was taken for a command"
    );
    let found = image.names("/top");
    assert_eq!(
        found.iter().map(Vec::as_slice).collect::<BTreeSet<_>>(),
        wanted
    );
    assert_eq!(found.len(), names.len());

    // And in each directory a file of the same name with its content, read back by debugfs.
    let copy = TempDir::new().unwrap();
    image.debugfs(&format!("rdump /top \"{}\"", copy.path().display()));
    for name in &names {
        let directory = copy.path().join("top").join(OsStr::from_bytes(name));
        assert_eq!(
            fs::read(directory.join(OsStr::from_bytes(name))).unwrap(),
            *name
        );
        assert!(directory.join(OsStr::from_bytes(b"in\nner")).is_dir());
    }
}

#[test]
fn symbolic_links_keep_their_text() {
    let folder = TempDir::new().unwrap();
    let texts = [
        "short".to_owned(),
        "long/".repeat(30),
        "two\nlines".to_owned(),
        "\"".repeat(4095),
    ];
    let mut tree = Tree::new();
    for (index, text) in texts.iter().enumerate() {
        tree.symlink(format!("/links/{index}"), text).unwrap();
    }
    tree.set_owner("/links", Owner { uid: 9, gid: 9 }).unwrap();
    let image = build(&tree, &folder);

    let copy = TempDir::new().unwrap();
    image.debugfs(&format!("rdump /links \"{}\"", copy.path().display()));
    for (index, text) in texts.iter().enumerate() {
        assert_eq!(image.entry(&format!("/links/{index}")), "120777 9 9");
        let found = fs::read_link(copy.path().join("links").join(index.to_string())).unwrap();
        assert_eq!(found, Path::new(text));
    }
}

#[test]
fn hard_links_are_one_file() {
    let host = TempDir::new().unwrap();
    let path = |name: &str| host.path().join(name);
    fs::create_dir(path("d")).unwrap();
    fs::write(path("z"), "shared").unwrap();
    for name in ["a", "d/b", "d/c\n"] {
        fs::hard_link(path("z"), path(name)).unwrap();
    }
    std::os::unix::fs::symlink("odd\ntext", path("link")).unwrap();
    fs::hard_link(path("link"), path("link-2")).unwrap();
    let folder = TempDir::new().unwrap();
    let mut tree = Tree::from_dir(host.path()).unwrap();
    // The file sorts after its link, and its owner is set through the link.
    tree.file("/later/file", 0o600, "x").unwrap();
    tree.insert("/early", Node::new(Kind::HardLink("/later/file".into()), 0))
        .unwrap();
    tree.set_owner("/early", Owner { uid: 3, gid: 4 }).unwrap();
    let image = build(&tree, &folder);

    let inode = |path: &str| {
        image
            .stat(path)
            .split_whitespace()
            .nth(1)
            .unwrap()
            .to_owned()
    };
    assert_eq!(inode("/a"), inode("/z"));
    assert_eq!(inode("/a"), inode("/d/b"));
    assert_eq!(inode("/early"), inode("/later/file"));
    assert_eq!(inode("/link"), inode("/link-2"));
    assert!(image.stat("/z").contains("Links: 4 "));
    assert_eq!(image.cat("/d/b"), "shared");
    assert_eq!(image.entry("/later/file"), "100600 3 4");
}

#[test]
fn devices_and_pipes_need_no_privileges() {
    let folder = TempDir::new().unwrap();
    let mut tree = Tree::new();
    let devices = [
        ("/dev/null", Kind::CharDevice { major: 1, minor: 3 }),
        (
            "/dev/large",
            Kind::BlockDevice {
                major: 259,
                minor: 60_000,
            },
        ),
        ("/dev/pipe", Kind::Fifo),
    ];
    for (path, kind) in devices {
        tree.insert(path, Node::new(kind, 0o666)).unwrap();
    }
    let image = build(&tree, &folder);
    assert_eq!(image.entry("/dev/null"), "020666 0 0");
    assert_eq!(image.entry("/dev/pipe"), "010666 0 0");
    assert!(
        image
            .stat("/dev/null")
            .contains("Device major/minor number: 01:03")
    );
    assert!(
        image
            .stat("/dev/large")
            .contains("major/minor number: 259:60000")
    );
}

#[test]
fn holes_stay_holes() {
    let host = TempDir::new().unwrap();
    let mut file = File::create(host.path().join("sparse")).unwrap();
    file.write_all(&[1; 4096]).unwrap();
    file.set_len(64 << 20).unwrap();
    let folder = TempDir::new().unwrap();
    let image = build(&Tree::from_dir(host.path()).unwrap(), &folder);
    let stat = image.stat("/sparse");
    assert!(
        stat.contains("Size: 67108864") && stat.contains("Blockcount: 8\n"),
        "{stat}"
    );
}

#[test]
fn extended_attributes_are_kept() {
    let host = TempDir::new().unwrap();
    let path = host.path().join("file");
    fs::write(&path, "").unwrap();
    let mut tree = Tree::from_dir(host.path()).unwrap();
    let set = |name: &str, value: &[u8]| {
        rustix::fs::setxattr(&path, name, value, rustix::fs::XattrFlags::empty())
    };
    if let Err(errno) = set("user.note", b"from \"the\" host\n\0") {
        println!("skipped: the temporary folder has no extended attributes ({errno})");
    } else {
        set("user.b", b"2").unwrap();
        tree = Tree::from_dir(host.path()).unwrap();
        let stat = build(&tree, &TempDir::new().unwrap()).stat("/file");
        assert!(
            stat.contains("user.note (17)") && stat.contains("user.b (1) = \"2\""),
            "{stat}"
        );
    }

    let mut node = Node::new(Kind::Directory, 0o755);
    node.xattrs
        .insert(OsString::from("user.made"), b"by hand".to_vec());
    node.xattrs
        .insert(OsString::from("user.large"), vec![b'x'; 2000]);
    tree.insert("/dir\n", node).unwrap();
    let folder = TempDir::new().unwrap();
    let image = build(&tree, &folder);
    let listing = image.debugfs("ls -p /");
    let inode = listing.lines().find(|line| line.ends_with("/dir")).unwrap();
    let stat = image.debugfs(&format!("stat <{}>", inode.split('/').nth(1).unwrap()));
    assert!(
        stat.contains("user.made (7) = \"by hand\"") && stat.contains("user.large (2000)"),
        "{stat}"
    );
}

#[test]
fn a_computed_size_holds_many_small_files() {
    let mut tree = Tree::new();
    for index in 0..3000 {
        let name = "long-name-".repeat(index % 20);
        tree.file(
            format!("/{}/{index}-{name}", index % 7),
            0o644,
            "x".repeat(index),
        )
        .unwrap();
    }
    let folder = TempDir::new().unwrap();
    let image = build(&tree, &folder);
    assert_eq!(
        image.cat("/6/6-long-name-long-name-long-name-long-name-long-name-long-name-"),
        "xxxxxx"
    );
}
