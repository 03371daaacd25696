//! The tree of a VM that boots an image, compared with what `umoci` unpacks.

use std::{
    fs,
    os::unix::{self, fs::PermissionsExt as _, fs::symlink},
    path::Path,
    process::Command,
};

use super::{Store, busybox, with_shell};

/// Lists a tree with all that BusyBox can tell: kinds, permissions, owners, times, numbers of
/// links, sizes, targets, device numbers and contents.
const LIST: &str = "\
    busybox find . -xdev -type f -exec busybox stat -c '%n %a %u:%g %Y %s %h' {} +; \
    busybox find . -xdev ! -type f -exec busybox stat -c '%N %F %a %u:%g %Y %t,%T' {} +; \
    busybox find . -xdev -type f -exec busybox sha256sum {} +";

/// What each VM has of its own, and what a file system has.
const OWN: [&str; 5] = ["./dev", "./proc", "./run", "./sys", "./lost+found"];

/// The layers that are added to the first one.
const LAYERS: usize = 100;

/// Fills a tree with what images have, and what they rarely have.
fn fill(root: &Path) {
    with_shell(root);
    let path = |name: &str| root.join(name);
    let mode = |name: &str, mode| {
        fs::set_permissions(path(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    fs::create_dir_all(path("srv/sticky")).unwrap();
    fs::create_dir(path("added")).unwrap();
    mode("srv/sticky", 0o1777);
    fs::write(path("srv/setuid"), "x").unwrap();
    mode("srv/setuid", 0o4755);
    fs::write(path("srv/\u{fc}ml\u{e4}ut with spaces"), "y").unwrap();
    fs::write(path(&format!("srv/{}", "long-".repeat(45))), "z").unwrap();
    fs::hard_link(path("srv/setuid"), path("other-name")).unwrap();
    symlink("/srv/sticky", path("absolute")).unwrap();
    symlink("../../nowhere", path("srv/dangling")).unwrap();
    let sparse = fs::File::create(path("srv/sparse")).unwrap();
    sparse.set_len(10 << 20).unwrap();
    unix::fs::FileExt::write_all_at(&sparse, b"in the middle", 5 << 20).unwrap();
    if rustix::process::geteuid().is_root() {
        fs::write(path("srv/nobody"), "n").unwrap();
        unix::fs::chown(path("srv/nobody"), Some(65534), Some(65534)).unwrap();
        let device = ["-m", "640", "srv/null", "c", "1", "3"];
        let made = Command::new("mknod")
            .args(device)
            .current_dir(root)
            .status();
        assert!(made.unwrap().success());
    }
}

#[test]
fn the_tree_of_a_booted_image_is_what_umoci_unpacks() {
    let store = Store::new();
    store.image("many", fill, &[]);
    // Each adds a file, and some replace or hide what an earlier one has added.
    for layer in 0..LAYERS {
        let file = format!("layer-{layer}");
        fs::write(store.0.path().join(&file), layer.to_string()).unwrap();
        let insert = ["insert", "--image", "image:many"];
        let (target, earlier) = (format!("/added/{layer}"), format!("/added/{}", layer / 2));
        let arguments: &[&str] = match layer % 10 {
            7 => &["--whiteout", &earlier],
            8 => &[&file, &earlier],
            _ => &[&file, &target],
        };
        store.umoci(&[&insert, arguments].concat());
    }
    let mut unpack = vec!["unpack", "--image", "image:many", "unpacked"];
    if !rustix::process::geteuid().is_root() {
        unpack.insert(1, "--rootless");
    }
    store.umoci(&unpack);
    let sorted = |text: &str| {
        let is_own = |line: &&str| {
            let first = line.trim_start_matches('\'');
            OWN.iter().any(|own| first.starts_with(own)) || first.starts_with(". ")
        };
        let lines = text.lines().filter(|line| !is_own(line)).map(str::to_owned);
        let mut lines: Vec<_> = lines.map(without_owner).collect();
        lines.sort();
        lines
    };
    let folder = store.0.path().join("unpacked/rootfs");
    let expected = Command::new(busybox())
        .args(["sh", "-c", LIST])
        .current_dir(folder)
        .output()
        .unwrap();
    let expected = sorted(&String::from_utf8(expected.stdout).unwrap());
    let run = ["run", "oci:image:many", "--mem-mib", "256", "--cwd", "/"];
    let ran = store
        .cli(run.into_iter().chain(["--", "/bin/sh", "-c", LIST]))
        .finish();
    assert!(ran.stderr.is_empty(), "{}", ran.stderr);
    let booted = sorted(ran.stdout());
    assert!(expected.len() > LAYERS, "{}", expected.len());
    let differs = |(ours, theirs): &(&String, &String)| ours != theirs;
    let difference = booted.iter().zip(&expected).find(differs);
    assert_eq!((difference, booted.len()), (None, expected.len()));
}

/// Only root can unpack an image with its owners.
fn without_owner(line: String) -> String {
    if rustix::process::geteuid().is_root() {
        return line;
    }
    let words = line.split(' ').filter(|word| !word.contains(':'));
    words.collect::<Vec<_>>().join(" ")
}
