use std::{
    fs,
    os::unix::fs::symlink,
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
    thread,
};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::Stream;

/// How often the directory and the link are exchanged at least.
const SWAPS: u32 = 10_000;

#[test]
fn a_directory_that_is_swapped_for_a_link_leads_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let (to, outside) = (folder.path().join("to"), folder.path().join("outside"));
    fs::create_dir_all(to.join("real")).unwrap();
    fs::create_dir_all(outside.join("e")).unwrap();
    fs::create_dir_all(to.join("d/e")).unwrap();
    symlink(&outside, to.join("swap")).unwrap();

    let stream = Stream::default()
        .enter(b"")
        .enter(b"d")
        .file(b"file", b"x")
        .symlink(b"link", b"x")
        .enter(b"e")
        .file(b"file", b"x")
        .leave()
        .leave()
        .hard_link(b"h", b"d/file")
        .leave();
    let is_done = AtomicBool::new(false);
    let swaps = AtomicU32::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                let (a, b) = (to.join("d"), to.join("swap"));
                if renameat_with(CWD, &a, CWD, &b, RenameFlags::EXCHANGE).is_ok() {
                    swaps.fetch_add(1, Ordering::Relaxed);
                } else {
                    // The receiver has replaced the link.
                    let _ = fs::remove_file(to.join("swap"));
                    let _ = symlink(&outside, to.join("swap"));
                }
                // Restore the link after it was replaced.
                if !to.join("swap").is_symlink() && !to.join("d").is_symlink() {
                    let _ = fs::remove_dir_all(to.join("swap"));
                    let _ = symlink(&outside, to.join("swap"));
                }
            }
        });
        let mut successes = 0;
        while swaps.load(Ordering::Relaxed) < SWAPS {
            successes += u32::from(stream.received(&to).is_ok());
        }
        is_done.store(true, Ordering::Relaxed);
        assert!(successes > 0);
    });
    let left: Vec<_> = fs::read_dir(&outside).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(fs::read_dir(outside.join("e")).unwrap().count(), 0);
}

#[test]
fn a_directory_above_the_destination_that_is_swapped_for_a_link_leads_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let (to, outside) = (folder.path().join("to"), folder.path().join("outside"));
    fs::create_dir_all(to.join("d/e")).unwrap();
    fs::create_dir_all(outside.join("e")).unwrap();
    symlink(&outside, to.join("swap")).unwrap();
    let tree = Stream::default().enter(b"").file(b"file", b"x").leave();
    let file = Stream::default().file(b"", b"x");
    let is_done = AtomicBool::new(false);
    let swaps = AtomicU32::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                let (a, b) = (to.join("d"), to.join("swap"));
                renameat_with(CWD, &a, CWD, &b, RenameFlags::EXCHANGE).unwrap();
                swaps.fetch_add(1, Ordering::Relaxed);
            }
        });
        let mut results = [0, 0];
        while swaps.load(Ordering::Relaxed) < SWAPS || results.contains(&0) {
            for received in [
                tree.received(&to.join("d/e")),
                tree.received(&to.join("d/new")),
                file.received(&to.join("d/file")),
            ] {
                results[usize::from(received.is_ok())] += 1;
            }
        }
        is_done.store(true, Ordering::Relaxed);
    });
    let left: Vec<_> = fs::read_dir(&outside).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(fs::read_dir(outside.join("e")).unwrap().count(), 0);
}
