use std::os::unix::fs::symlink;

use super::*;

fn linked() -> Image {
    let tree = tempfile::tempdir().unwrap();
    let root = tree.path();
    fs::create_dir_all(root.join("dir/sub")).unwrap();
    fs::write(root.join("dir/file"), b"x").unwrap();
    symlink("/dir", root.join("absolute")).unwrap();
    symlink("dir/sub/..", root.join("relative")).unwrap();
    symlink("../../../../dir", root.join("dir/sub/out")).unwrap();
    symlink("nowhere", root.join("broken")).unwrap();
    symlink("ring-2", root.join("ring-1")).unwrap();
    symlink("ring-1", root.join("ring-2")).unwrap();
    for number in 0..50 {
        let target = if number == 0 {
            "dir".to_owned()
        } else {
            format!("chain-{}", number - 1)
        };
        symlink(target, root.join(format!("chain-{number}"))).unwrap();
    }
    Image::new(&["-t", "ext4"], 8, Some(root))
}

#[test]
fn a_path_leads_where_the_kernel_would_go_in_a_new_root() {
    let image = linked();
    let ext4 = image.open();
    let file = find(&ext4, "dir/file").number;
    let directory = find(&ext4, "dir").number;
    for path in [
        "/dir/file",
        "//dir/./sub/../file",
        "../../dir/file",
        "absolute/file",
        "relative/file",
        "dir/sub/out/file",
        "absolute/sub/out/sub/out/file",
        "chain-39/file",
    ] {
        for follow in [SymlinkPolicy::Parents, SymlinkPolicy::All] {
            let found = ext4.lookup(path.as_bytes(), follow).unwrap();
            assert_eq!(found.number, file, "{path}");
        }
    }
    for path in ["", "/", ".", "..", "dir/.."] {
        assert_eq!(find(&ext4, path), ext4.root().unwrap(), "{path}");
    }
    // The last symlink is followed only with `All`, or with a trailing slash.
    let last = |path: &str, follow| ext4.lookup(path.as_bytes(), follow).unwrap();
    assert_eq!(last("absolute", SymlinkPolicy::Parents).kind, Kind::Symlink);
    assert_eq!(last("absolute", SymlinkPolicy::Never).kind, Kind::Symlink);
    assert_eq!(last("absolute", SymlinkPolicy::All).number, directory);
    assert_eq!(last("absolute/", SymlinkPolicy::Parents).number, directory);
}

#[test]
fn a_path_that_leads_nowhere_says_why() {
    let image = linked();
    let ext4 = image.open();
    let fails = |path: &[u8], follow| ext4.lookup(path, follow).unwrap_err();
    assert!(matches!(
        fails(b"dir/none", SymlinkPolicy::All),
        Error::NotFound { .. }
    ));
    assert!(matches!(
        fails(b"broken", SymlinkPolicy::All),
        Error::NotFound { .. }
    ));
    assert!(matches!(
        fails(b"dir/file/x", SymlinkPolicy::All),
        Error::NotDirectory { .. }
    ));
    assert!(matches!(
        fails(b"dir/file/", SymlinkPolicy::All),
        Error::NotDirectory { .. }
    ));
    assert!(matches!(
        fails(b"dir/file/..", SymlinkPolicy::All),
        Error::NotDirectory { .. }
    ));
    assert!(matches!(
        fails(b"absolute/file", SymlinkPolicy::Never),
        Error::IsSymlink { .. }
    ));
    assert!(matches!(
        fails(b"ring-1", SymlinkPolicy::All),
        Error::TooManySymlinks { .. }
    ));
    assert!(matches!(
        fails(b"chain-49", SymlinkPolicy::All),
        Error::TooManySymlinks { .. }
    ));
    let text = fails(b"a\x1b[31m\n", SymlinkPolicy::All).to_string();
    assert!(!text.contains(['\x1b', '\n']), "{text:?}");
}
