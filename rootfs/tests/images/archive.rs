//! Trees from tar archives, valid and malicious ones.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use tar::{Builder, EntryType, Header};
use tempfile::TempDir;
use vmcell_rootfs::{
    ArchiveProblem, Content, Error, ImageBuilder, Kind, Owner, PathProblem, Size, Tree,
};

use crate::inspect::Inspect;

/// Returns a header with this name, which may be invalid.
fn header(name: &[u8], kind: EntryType) -> Header {
    let mut header = Header::new_gnu();
    header.as_mut_bytes()[..name.len()].copy_from_slice(name);
    header.set_entry_type(kind);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(1_600_000_000);
    header.set_size(0);
    header
}

fn archive(entries: &[(Header, &[u8])]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (header, content) in entries {
        let mut header = header.clone();
        header.set_size(content.len() as u64);
        header.set_cksum();
        builder.append(&header, *content).unwrap();
    }
    builder.into_inner().unwrap()
}

fn link(name: &[u8], kind: EntryType, target: &str) -> Header {
    let mut header = header(name, kind);
    header.set_link_name_literal(target).unwrap();
    header
}

fn device(name: &[u8], kind: EntryType) -> Header {
    let mut header = header(name, kind);
    header.set_device_major(8).unwrap();
    header.set_device_minor(17).unwrap();
    header
}

fn refused(entries: &[(Header, &[u8])]) -> Error {
    Tree::from_tar(&archive(entries)[..]).unwrap_err()
}

/// Returns the host file with the content of a file.
fn content_path(tree: &Tree, path: &str) -> PathBuf {
    match &tree.get(path).unwrap().kind {
        Kind::File(Content::HostFile(file)) => file.clone(),
        other => panic!("{path} is {other:?}"),
    }
}

#[test]
fn everything_in_an_archive_arrives_in_the_image() {
    let mut owned = header(b"./bin/su", EntryType::Regular);
    owned.set_mode(0o4750);
    owned.set_uid(7);
    owned.set_gid(2_097_152);
    let mut top = header(b"./", EntryType::Directory);
    top.set_mode(0o711);
    let mut sticky = header(b"./tmp/", EntryType::Directory);
    sticky.set_mode(0o1777);
    let content = vec![9; 70_000];
    let tree = Tree::from_tar(
        &archive(&[
            (top, b""),
            (owned, &content),
            (link(b"./bin/su-2", EntryType::Link, "./bin/su"), b""),
            (link(b"./bin/su-3", EntryType::Link, "bin/su-2"), b""),
            (link(b"./out", EntryType::Symlink, "/../../etc/passwd"), b""),
            (sticky, b""),
            (header(b"./pipe", EntryType::Fifo), b""),
            (device(b"./tty", EntryType::Char), b""),
            (device(b"./disk", EntryType::Block), b""),
            (header(b"./empty", EntryType::Regular), b""),
        ])[..],
    )
    .unwrap();
    let node = tree.get("/bin/su").unwrap();
    assert_eq!(node.modified, Some(1_600_000_000));
    let owner = Owner {
        uid: 7,
        gid: 2_097_152,
    };
    assert_eq!(node.owner, owner);

    let folder = TempDir::new().unwrap();
    let builder = ImageBuilder::new().size(Size::Exact(16 << 20));
    let image = builder.build(&tree, folder.path().join("image")).unwrap();
    let image = Inspect(image.path);
    image.assert_clean();
    assert_eq!(image.entry("/bin/su"), "104750 7 2097152");
    assert_eq!(image.entry("/bin/su-3"), "104750 7 2097152");
    assert!(image.stat("/bin/su").contains("Links: 3"));
    assert!(image.stat("/bin/su").contains("Size: 70000"));
    assert!(image.stat("/out").contains("\"/../../etc/passwd\""));
    assert_eq!(image.entry("/tmp"), "041777 0 0");
    assert_eq!(image.entry("/pipe"), "010644 0 0");
    assert!(image.stat("/tty").contains("Type: character special"));
    assert!(
        image
            .stat("/disk")
            .contains("Device major/minor number: 08:17")
    );
    assert!(image.stat("/").contains("Mode:  0711"));
}

#[test]
fn what_the_real_tar_writes_is_understood_in_both_its_formats() {
    let folder = TempDir::new().unwrap();
    let long = format!("{}/{}", "d".repeat(200), "f".repeat(250));
    let path = folder.path().join("tree").join(&long);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "far away").unwrap();
    std::os::unix::fs::symlink(&long, folder.path().join("tree/link")).unwrap();
    fs::hard_link(&path, folder.path().join("tree/zz")).unwrap();
    for format in ["gnu", "pax"] {
        let output = Command::new("tar")
            .args(["--create", "--sort=name", "--owner=:3000000", "--group=:5"])
            .args(["--numeric-owner", &format!("--format={format}"), "."])
            .current_dir(folder.path().join("tree"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let tree = Tree::from_tar(&output.stdout[..]).unwrap();
        assert_eq!(fs::read(content_path(&tree, &long)).unwrap(), b"far away");
        let owner = Owner {
            uid: 3_000_000,
            gid: 5,
        };
        assert_eq!(tree.get(&long).unwrap().owner, owner);
        let link = tree.get("link").unwrap();
        assert_eq!(link.kind, Kind::Symlink(PathBuf::from(&long)));
        let name = tree.get("zz").unwrap();
        assert_eq!(name.kind, Kind::HardLink(PathBuf::from(&long)));
    }
}

#[test]
fn sparse_and_large_files_and_times_are_understood() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("sparse");
    let file = fs::File::create(&path).unwrap();
    for offset in [0, 1_000_000, 1_500_000] {
        file.write_all_at(b"data", offset).unwrap();
    }
    file.set_len(2_000_000).unwrap();
    let before_1970 = UNIX_EPOCH - Duration::from_millis(500);
    file.set_modified(before_1970).unwrap();
    for format in ["gnu", "pax"] {
        let output = Command::new("tar")
            .args(["--create", "--sparse", "--file=-"])
            .args([&format!("--format={format}"), "sparse"])
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        assert!(output.stdout.len() < 1_000_000, "tar found no holes");
        let tree = Tree::from_tar(&output.stdout[..]).unwrap();
        let content = fs::read(content_path(&tree, "sparse")).unwrap();
        assert!(content == fs::read(&path).unwrap(), "{format}");
        assert_eq!(tree.get("sparse").unwrap().modified, Some(-1));
    }

    let records = header(b"x", EntryType::XHeader);
    let mut file = header(b"a", EntryType::Regular);
    file.set_size(0);
    file.set_cksum();
    let mut bytes = archive(&[(records, b"10 size=4\n")]);
    bytes.truncate(1024);
    bytes.extend_from_slice(file.as_bytes());
    bytes.extend_from_slice(b"long");
    bytes.resize(4096, 0);
    let tree = Tree::from_tar(&bytes[..]).unwrap();
    assert_eq!(fs::read(content_path(&tree, "a")).unwrap(), b"long");
}

#[test]
fn holes_count_as_bytes() {
    let mut sparse = header(b"a", EntryType::GNUSparse);
    // A binary number: octal ones end at 8 GiB.
    let length = &mut sparse.as_gnu_mut().unwrap().realsize;
    length[0] = 0x80;
    length[4..].copy_from_slice(&(65_u64 << 30).to_be_bytes());
    let error = refused(&[(sparse, b"")]);
    let is_right = matches!(
        error,
        Error::Archive {
            problem: ArchiveProblem::TooLarge,
            ..
        }
    );
    assert!(is_right, "{error}");
}

#[test]
fn names_that_lead_outside_are_refused() {
    let file = |name: &[u8]| (header(name, EntryType::Regular), &b"x"[..]);
    for name in [&b"../x"[..], b"a/../../x", b"./..", b"/../x"] {
        let error = refused(&[file(name)]);
        let is_right = matches!(
            error,
            Error::Path {
                problem: PathProblem::ParentComponent,
                ..
            }
        );
        assert!(is_right, "{error}");
    }
    // A link to the outside is stored as it is, but entries beneath it are rejected.
    let out = link(b"out", EntryType::Symlink, "/tmp");
    let error = refused(&[(out, b""), file(b"out/x")]);
    let is_right = matches!(
        error,
        Error::Path {
            problem: PathProblem::ParentNotDirectory,
            ..
        }
    );
    assert!(is_right, "{error}");
}

#[test]
fn absolute_names_are_relative_to_the_image() {
    let file = header(b"//etc/passwd", EntryType::Regular);
    let tree = Tree::from_tar(
        &archive(&[
            (header(b"/", EntryType::Directory), b""),
            (file, b"x"),
            (link(b"/copy", EntryType::Link, "/etc/passwd"), b""),
            (link(b"/link", EntryType::Symlink, "/etc/passwd"), b""),
        ])[..],
    )
    .unwrap();
    assert_eq!(fs::read(content_path(&tree, "etc/passwd")).unwrap(), b"x");
    let copy = &tree.get("copy").unwrap().kind;
    assert_eq!(*copy, Kind::HardLink(PathBuf::from("etc/passwd")));
    let link = &tree.get("link").unwrap().kind;
    assert_eq!(*link, Kind::Symlink(PathBuf::from("/etc/passwd")));
}

#[test]
fn hard_links_lead_to_earlier_files_only() {
    let directory = (header(b"d", EntryType::Directory), &b""[..]);
    for target in ["d", "later", "self", "/d", "../d", ""] {
        let entries = [
            directory.clone(),
            (link(b"self", EntryType::Link, target), &b""[..]),
            (header(b"later", EntryType::Regular), &b""[..]),
        ];
        let error = refused(&entries);
        let is_right = matches!(
            error,
            Error::Archive {
                problem: ArchiveProblem::BadHardLink,
                ..
            }
        );
        assert!(is_right, "{target}: {error}");
    }
}

#[test]
fn what_an_image_cannot_hold_is_refused_with_its_reason() {
    let problem = |entries: &[(Header, &[u8])]| match refused(entries) {
        Error::Archive { problem, .. } => problem,
        other => panic!("{other}"),
    };
    let plain = header(b"a", EntryType::Regular);
    let twice = [(plain.clone(), &b"1"[..]), (plain.clone(), &b"2"[..])];
    assert_eq!(problem(&twice), ArchiveProblem::Duplicate);
    let strange = header(b"a", EntryType::new(b'Z'));
    assert_eq!(problem(&[(strange, b"")]), ArchiveProblem::UnsupportedKind);
    let sparse = header(b"a", EntryType::GNUSparse);
    assert_eq!(problem(&[(sparse, b"")]), ArchiveProblem::Sparse);
    let large = header(b"x", EntryType::XHeader);
    let records = b"28 GNU.sparse.realsize=1000\n";
    assert_eq!(
        problem(&[(large.clone(), records), (plain.clone(), b"")]),
        ArchiveProblem::Sparse
    );
    assert_eq!(
        problem(&[(large, b"15 uid=-1e1000\n"), (plain.clone(), b"")]),
        ArchiveProblem::BadNumber
    );
    let mut foreign = plain;
    foreign.set_uid(1 << 40);
    assert_eq!(problem(&[(foreign, b"")]), ArchiveProblem::BadNumber);
}

#[test]
fn a_name_without_end_is_not_gathered() {
    // The header announces a name of 300 MB. It is rejected before it is read.
    let mut name = header(b"././@LongLink", EntryType::GNULongName);
    name.set_size(300 << 20);
    name.set_cksum();
    let endless = std::io::Read::chain(&name.as_bytes()[..], std::io::repeat(b'a'));
    let error = Tree::from_tar(endless).unwrap_err();
    let is_right = matches!(
        error,
        Error::Archive {
            problem: ArchiveProblem::TooLong,
            ..
        }
    );
    assert!(is_right, "{error}");
}

#[test]
fn an_archive_that_stops_early_is_not_taken_for_a_whole_one() {
    let file = header(b"file", EntryType::Regular);
    let bytes = archive(&[(file, &[7; 5000])]);
    for length in [100, 512, 600, 5000, 512 + 5120] {
        let error = Tree::from_tar(&bytes[..length]).unwrap_err();
        assert!(matches!(error, Error::ArchiveUnreadable { .. }), "{error}");
    }
    let error = Tree::from_tar(&[0x1f, 0x8b].repeat(600)[..]).unwrap_err();
    assert!(error.to_string().contains("compressed"), "{error}");
}

#[test]
fn contents_stay_as_long_as_a_tree_and_no_longer() {
    let file = header(b"file", EntryType::Regular);
    let tree = Tree::from_tar(&archive(&[(file, b"content")])[..]).unwrap();
    let copy = tree.clone();
    let content = content_path(&tree, "/file");
    drop(tree);
    assert_eq!(fs::read(&content).unwrap(), b"content");
    drop(copy);
    assert!(!content.parent().unwrap().exists());
}
