use std::{
    fs::{self, File},
    ops::ControlFlow,
    os::unix::fs::FileExt as _,
};

use super::{
    super::{FlattenProgress, Image, ImageError, OpenOptions, create_child, flatten},
    tools::{Folder, Rng, open, qemu_io, read_all},
};

const SIZE: u64 = 256 << 20;

fn go_on(_: FlattenProgress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Creates a child of a sparse base, with stored zeros.
fn chain(folder: &Folder) -> Image {
    let base = folder.path("base");
    let file = File::create(&base).unwrap();
    file.set_len(SIZE).unwrap();
    file.write_all_at(&Rng::new(8).bytes(3 << 20), 100 << 20)
        .unwrap();
    let child = folder.path("child");
    create_child(&base, &child, OpenOptions::new()).unwrap();
    qemu_io(
        &child,
        [
            "write -P 1 200M 2M",
            "write -P 0 201M 500k",
            "write -z 101M 1M",
        ],
    );
    open(&child).unwrap()
}

#[test]
fn a_flat_disk_is_the_same_and_has_holes() {
    let folder = Folder::new();
    let image = chain(&folder);
    let flat = folder.path("flat");
    let mut last = None;
    let made = flatten(&image, &flat, u64::MAX, &mut |progress| {
        last = Some(progress);
        ControlFlow::Continue(())
    });
    let made = made.unwrap();
    let data = (2 << 20) + (2 << 20) - 500 * 1024;
    assert_eq!((made.size, made.written), (SIZE, data));
    assert!(made.allocated < data + (1 << 20), "{made:?}");
    let last = last.unwrap();
    assert_eq!((last.done, last.size, last.written), (SIZE, SIZE, data));

    let (flat, mut one, mut other) = (open(&flat).unwrap(), vec![0; 8 << 20], vec![1; 8 << 20]);
    for offset in (0..SIZE).step_by(8 << 20) {
        image.read_at(offset, &mut one).unwrap();
        flat.read_at(offset, &mut other).unwrap();
        assert!(one == other, "at {offset}");
    }
}

#[test]
fn flattening_ends_at_its_limit_or_when_told_to_and_leaves_nothing() {
    let folder = Folder::new();
    let image = chain(&folder);
    let flat = folder.path("flat");
    let error = flatten(&image, &flat, 3 << 20, &mut go_on).unwrap_err();
    assert!(matches!(error, ImageError::Limit { .. }), "{error}");
    let mut pieces = 0;
    let error = flatten(&image, &flat, u64::MAX, &mut |_| {
        pieces += 1;
        match pieces {
            3 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    });
    assert!(matches!(error, Err(ImageError::Cancelled)), "{error:?}");
    assert_eq!(pieces, 3);
    assert_eq!(folder.names(), ["base", "child"]);

    fs::write(&flat, "precious").unwrap();
    let error = flatten(&image, &flat, u64::MAX, &mut go_on).unwrap_err();
    assert!(matches!(error, ImageError::Exists { .. }), "{error}");
    assert_eq!(fs::read(&flat).unwrap(), b"precious");
}

#[test]
fn a_damaged_image_leaves_nothing_behind() {
    let folder = Folder::new();
    let disk = folder.qcow2("disk", &[], 4 << 20);
    qemu_io(&disk, ["write -P 1 0 4M"]);
    let content = fs::read(&disk).unwrap();
    fs::write(&disk, &content[..content.len() - (1 << 20)]).unwrap();
    let image = open(&disk).unwrap();
    let error = flatten(&image, folder.path("flat"), u64::MAX, &mut go_on).unwrap_err();
    assert!(matches!(error, ImageError::Damaged { .. }), "{error}");
    assert_eq!(folder.names(), ["disk"]);
}

#[test]
fn an_odd_size_is_kept() {
    let folder = Folder::new();
    let content = Rng::new(9).bytes(1_234_567);
    let image = open(&folder.file("disk", &content)).unwrap();
    flatten(&image, folder.path("flat"), u64::MAX, &mut go_on).unwrap();
    assert!(read_all(&open(&folder.path("flat")).unwrap(), 4096) == content);
}
