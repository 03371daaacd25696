use std::{fs, path::Path, process::Command};

use super::{
    super::{Format, Image, ImageError, OpenOptions, create_child, write_empty_layer},
    tools::{Folder, Rng, converted, open, qemu_img, qemu_io, read_all},
};

/// Returns the output of `qemu-img info`.
fn info(path: &Path) -> String {
    let mut command = Command::new("qemu-img");
    qemu_img(command.arg("info").arg(path))
}

#[test]
fn a_child_shows_its_base_and_takes_writes() {
    let folder = Folder::new();
    let mut content = Rng::new(7).bytes(1 << 20);
    let base = folder.file("base", &content);
    let child = folder.path("child");
    let layer = create_child(&base, &child, OpenOptions::new()).unwrap();
    assert_eq!((&layer.path, layer.size), (&child, 1 << 20));
    assert_eq!((layer.format, layer.sealed), (Format::Qcow2, false));
    assert!(read_all(&open(&child).unwrap(), 1 << 20) == content);

    qemu_io(&child, ["write -P 8 512 1024"]);
    let mut command = Command::new("qemu-img");
    qemu_img(command.arg("check").arg(&child));
    assert!(fs::read(&base).unwrap() == content);
    content[512..1536].fill(8);
    assert!(read_all(&open(&child).unwrap(), 1 << 20) == content);
    assert!(converted(&folder, &child) == content);

    let grandchild = folder.path("grandchild");
    create_child(&child, &grandchild, OpenOptions::new()).unwrap();
    assert!(read_all(&open(&grandchild).unwrap(), 1 << 20) == content);
    assert!(info(&grandchild).contains("backing file format: qcow2"));
}

#[test]
fn a_base_is_named_so_that_both_can_be_moved_together() {
    let folder = Folder::new();
    for name in ["bases", "disks", "disks/deep"] {
        fs::create_dir(folder.path(name)).unwrap();
    }
    let base = folder.file("bases/a:b", [1; 4096]);
    let options = OpenOptions::new();
    create_child(&base, folder.path("disks/deep/disk"), options.clone()).unwrap();
    create_child(&base, folder.path("bases/disk"), options.clone()).unwrap();
    let disk = info(&folder.path("disks/deep/disk"));
    assert!(disk.contains("backing file: ./../../bases/a:b"), "{disk}");
    let disk = info(&folder.path("bases/disk"));
    assert!(disk.contains("backing file: ./a:b"), "{disk}");
    fs::rename(folder.path("bases"), folder.path("moved")).unwrap();
    assert!(read_all(&open(&folder.path("moved/disk")).unwrap(), 4096) == [1; 4096]);
}

#[test]
fn the_size_of_a_child_is_whole_sectors() {
    let folder = Folder::new();
    let base = folder.file("base", [1; 1000]);
    let layer = create_child(&base, folder.path("child"), OpenOptions::new()).unwrap();
    assert_eq!(layer.size, 1024);
    let mut disk = [1; 1024];
    disk[1000..].fill(0);
    assert!(read_all(&open(&layer.path).unwrap(), 1024) == disk);
}

#[test]
fn no_child_is_made_that_could_not_be_opened() {
    let folder = Folder::new();
    let options = OpenOptions::new();
    let mut below = folder.file("0", [1; 512]);
    for number in 1..64 {
        let child = folder.path(&number.to_string());
        create_child(&below, &child, options.clone()).unwrap();
        below = child;
    }
    open(&below).unwrap();
    let error = create_child(&below, folder.path("64"), options.clone()).unwrap_err();
    assert!(matches!(error, ImageError::TooManyLayers { .. }), "{error}");
    assert_eq!(folder.names().len(), 64);
}

#[test]
fn nothing_is_overwritten_and_nothing_is_left() {
    let folder = Folder::new();
    let base = folder.file("base", [1; 512]);
    let child = folder.file("child", "precious");
    let options = OpenOptions::new();
    let error = create_child(&base, &child, options.clone()).unwrap_err();
    assert!(matches!(error, ImageError::Exists { .. }), "{error}");
    std::os::unix::fs::symlink("nowhere", folder.path("link")).unwrap();
    let error = create_child(&base, folder.path("link"), options.clone()).unwrap_err();
    assert!(matches!(error, ImageError::Exists { .. }), "{error}");
    assert!(create_child(&base, folder.path("missing/child"), options.clone()).is_err());
    assert!(create_child(folder.path("missing"), folder.path("new"), options.clone()).is_err());
    assert_eq!(fs::read(&child).unwrap(), b"precious");
    assert_eq!(folder.names(), ["base", "child", "link"]);
}

#[test]
fn a_name_that_a_header_cannot_hold_is_refused() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _};
    let folder = Folder::new();
    let base = folder.path("").join(OsStr::from_bytes(b"b\xffse"));
    fs::write(&base, [1; 512]).unwrap();
    let error = create_child(&base, folder.path("child"), OpenOptions::new()).unwrap_err();
    assert!(matches!(error, ImageError::BaseName { .. }), "{error}");
}

#[test]
fn a_raw_base_with_a_lie_stays_raw_in_its_child() {
    let folder = Folder::new();
    let lie = folder.qcow2("base", &[], 1 << 20);
    let content = fs::read(&lie).unwrap();
    let options = OpenOptions::new().format(Format::Raw);
    let child = create_child(&lie, folder.path("child"), options.clone()).unwrap();
    let image = Image::open(&child.path, OpenOptions::new()).unwrap();
    assert!(read_all(&image, 1 << 20)[..content.len()] == content);
}

#[test]
fn a_hundred_children_take_no_time() {
    let folder = Folder::new();
    let base = folder.path("base");
    fs::File::create(&base).unwrap().set_len(1 << 30).unwrap();
    let start = std::time::Instant::now();
    for number in 0..100 {
        let child = folder.path(&number.to_string());
        create_child(&base, child, OpenOptions::new()).unwrap();
    }
    let took = start.elapsed();
    eprintln!("100 children in {took:?}");
    // Generous, for slow or busy machines.
    assert!(took.as_secs() < 20, "{took:?}");
}

/// A table of the first level fills a cluster at 4 TiB.
#[test]
fn an_empty_layer_of_any_size_is_sound() {
    let folder = Folder::new();
    for size in [
        0,
        512,
        1 << 29,
        (1 << 29) + 512,
        4 << 40,
        (4 << 40) + 512,
        64 << 40,
    ] {
        let path = folder.path("layer");
        let file = fs::File::create(&path).unwrap();
        write_empty_layer(&file, size, None).unwrap();
        let mut command = Command::new("qemu-img");
        qemu_img(command.arg("check").arg(&path));
        assert_eq!(open(&path).unwrap().size(), size);
        if let Some(last) = size.checked_sub(512) {
            assert_eq!(sector(&path, last), [0; 512]);
            qemu_io(&path, [format!("write -P 7 {last} 512").as_str()]);
            assert_eq!(sector(&path, last), [7; 512]);
        }
    }
    let file = fs::File::create(folder.path("layer")).unwrap();
    assert!(write_empty_layer(&file, (64 << 40) + 1, None).is_err());
}

/// Reads 512 bytes at an offset.
fn sector(path: &Path, offset: u64) -> [u8; 512] {
    let mut bytes = [1; 512];
    open(path).unwrap().read_at(offset, &mut bytes).unwrap();
    bytes
}
