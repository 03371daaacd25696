//! The recipe `base` and the cache.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use tempfile::TempDir;
use vmcell_rootfs::{Cache, ImageBuilder, Origin, Progress, Recipe as _, Size, Stage, recipe};

use crate::inspect::{Inspect, assert_identical, files_in, install_program};

/// Small, so that comparing whole images is quick.
fn small_base() -> recipe::Base {
    recipe::base().size(Size::Fit { headroom: 0 })
}

#[test]
fn base_is_an_environment_for_root_and_cell() {
    let cache = TempDir::new().unwrap();
    let image = Cache::at(cache.path()).image(&recipe::base()).unwrap();
    let on_disk = fs::metadata(&image.path).unwrap();
    assert_eq!(on_disk.len(), 2 << 30);
    assert_eq!(image.size, 2 << 30);
    assert!(
        on_disk.blocks() * 512 < 8 << 20,
        "takes {} blocks",
        on_disk.blocks()
    );
    assert_eq!(on_disk.permissions().mode() & 0o7777, 0o444);

    let image = Inspect(image.path);
    image.assert_clean();
    let expected = [
        ("/bin/busybox", "100755 0 0"),
        ("/bin/sh", "120777 0 0"),
        ("/dev", "040755 0 0"),
        ("/etc/passwd", "100644 0 0"),
        ("/etc/shadow", "100600 0 0"),
        ("/home", "040755 0 0"),
        ("/home/cell", "040755 1000 1000"),
        ("/proc", "040555 0 0"),
        ("/root", "040700 0 0"),
        ("/run", "040755 0 0"),
        ("/sbin/ifconfig", "120777 0 0"),
        ("/tmp", "041777 0 0"),
        ("/usr/bin/env", "120777 0 0"),
        ("/usr/sbin/chroot", "120777 0 0"),
        ("/var/tmp", "041777 0 0"),
        ("/workspace", "040755 1000 1000"),
    ];
    for (path, entry) in expected {
        assert_eq!(image.entry(path), entry, "{path}");
    }
    assert!(
        image
            .cat("/etc/passwd")
            .contains("\ncell:x:1000:1000:cell:/home/cell:/bin/sh\n")
    );
    assert!(image.cat("/etc/os-release").contains("ID=vmcell-base\n"));
    assert!(
        image
            .cat("/etc/shadow")
            .lines()
            .all(|line| line.contains(":!:"))
    );
    assert!(
        image
            .stat("/usr/bin/env")
            .contains("Fast link dest: \"../../bin/busybox\"")
    );

    // No background initialization in the guest, and no blocks reserved for root.
    let layout = image.dumpe2fs();
    let groups = layout.matches(": (Blocks ").count();
    assert_eq!(groups, 16);
    assert_eq!(layout.matches("ITABLE_ZEROED").count(), groups);
    assert!(layout.contains("Reserved block count:     0\n"));
}

#[test]
fn the_second_call_finds_what_the_first_made() {
    let folder = TempDir::new().unwrap();
    let cache = Cache::at(folder.path().join("made/on/demand"));
    assert_eq!(cache.lookup(&small_base()).unwrap(), None);
    assert!(!cache.folder().exists(), "a lookup makes nothing");

    let mut reports: Vec<Progress> = Vec::new();
    let built = cache
        .image_with(&small_base(), |progress| reports.push(progress))
        .unwrap();
    assert_eq!(built.origin, Origin::Built);
    assert_eq!(reports.first().unwrap().stage, Stage::Gather);
    assert_eq!(
        *reports.last().unwrap(),
        Progress {
            stage: Stage::Done,
            fraction: 1.0
        }
    );
    assert!(reports.is_sorted_by(|a, b| a.fraction <= b.fraction && a.stage <= b.stage));
    let name = built.path.file_name().unwrap().to_str().unwrap();
    assert_eq!(name, format!("base-{}.ext4", built.digest.short()));

    let begin = Instant::now();
    let found = cache
        .image_with(&small_base(), |_| panic!("there is nothing to do"))
        .unwrap();
    println!("found in {:?}", begin.elapsed());
    assert_eq!(found.origin, Origin::Found);
    assert_eq!(
        (found.path, found.size, found.uuid),
        (built.path, built.size, built.uuid)
    );
    assert_eq!(
        cache.lookup(&small_base()).unwrap().unwrap().digest,
        built.digest
    );
}

#[test]
fn other_inputs_make_another_image() {
    let folder = TempDir::new().unwrap();
    let cache = Cache::at(folder.path());
    let first = cache.image(&small_base()).unwrap();
    let other_size = small_base().size(Size::Fit { headroom: 1 << 20 });
    assert_eq!(cache.lookup(&other_size).unwrap(), None);

    // Another busybox: the installed one with a byte at its end.
    let tree = small_base().tree().unwrap();
    let vmcell_rootfs::Kind::File(vmcell_rootfs::Content::Bytes(mut bytes)) =
        tree.get("/bin/busybox").unwrap().kind.clone()
    else {
        panic!("busybox is a file");
    };
    bytes.push(0);
    let path = folder.path().join("busybox");
    install_program(&path, &bytes);
    let second = cache.image(&small_base().busybox(&path)).unwrap();
    assert_ne!(first.digest, second.digest);
    assert_ne!(first.uuid, second.uuid);
}

#[test]
fn builders_at_the_same_time_all_get_a_whole_image() {
    let folder = TempDir::new().unwrap();
    let start = Barrier::new(3);
    let images: Vec<_> = thread::scope(|scope| {
        let build = || {
            start.wait();
            Cache::at(folder.path()).image(&small_base()).unwrap()
        };
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(build)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert!(images.iter().all(|image| image.path == images[0].path));
    assert_eq!(files_in(folder.path()).len(), 1);

    let again = folder.path().join("again");
    let seed = images[0].digest.0;
    let tree = small_base().tree().unwrap();
    let image = small_base()
        .image_builder()
        .seed(seed)
        .build(&tree, again)
        .unwrap();
    assert_identical(&image.path, &images[0].path);
}

#[test]
fn a_damaged_file_in_the_cache_is_replaced() {
    let folder = TempDir::new().unwrap();
    let cache = Cache::at(folder.path());
    let built = cache.image(&small_base()).unwrap();
    let stranger = ImageBuilder::new().size(Size::Exact(16 << 20));
    let stranger = stranger
        .build(&vmcell_rootfs::Tree::new(), folder.path().join("stranger"))
        .unwrap();

    type Damage<'a> = Box<dyn Fn(&Path) + 'a>;
    let damages: [Damage<'_>; 3] = [
        Box::new(|path| fs::write(path, "").unwrap()),
        Box::new(|path| {
            let image = fs::read(&stranger.path).unwrap();
            fs::write(path, &image[..image.len() - 4096]).unwrap();
        }),
        Box::new(|path| assert!(fs::copy(&stranger.path, path).is_ok())),
    ];
    for damage in damages {
        fs::remove_file(&built.path).unwrap();
        damage(&built.path);
        assert_eq!(cache.lookup(&small_base()).unwrap(), None);
        assert_eq!(cache.image(&small_base()).unwrap().origin, Origin::Built);
        Inspect(built.path.clone()).assert_clean();
    }
}

#[test]
fn what_a_crash_left_is_swept_away_in_time() {
    let folder = TempDir::new().unwrap();
    let (old, new) = (
        folder.path().join(".vmcell-a.partial"),
        folder.path().join(".vmcell-b.partial"),
    );
    fs::write(&new, "").unwrap();
    fs::write(&old, "").unwrap();
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(25 * 60 * 60);
    fs::File::options()
        .write(true)
        .open(&old)
        .unwrap()
        .set_modified(long_ago)
        .unwrap();
    Cache::at(folder.path()).image(&small_base()).unwrap();
    assert!(!old.exists() && new.exists());
}
