use std::{fs, os::unix::fs::MetadataExt as _};

use super::{
    super::{Format, ImageError, OpenOptions, seal},
    tools::{Folder, open, qemu_io},
};

#[test]
fn layers_are_told_top_first() {
    let folder = Folder::new();
    let base = folder.path("base");
    fs::File::create(&base).unwrap().set_len(1 << 30).unwrap();
    let child = folder.qcow2_above("child", ("base", "raw"), &[]);
    qemu_io(&child, ["write -P 1 0 1M"]);
    let layers = open(&child).unwrap().layers().unwrap();
    let [top, bottom] = layers.as_slice() else {
        panic!("{layers:?}");
    };
    assert_eq!((&top.path, &bottom.path), (&child, &base));
    assert_eq!((top.format, bottom.format), (Format::Qcow2, Format::Raw));
    assert_eq!((top.size, bottom.size), (1 << 30, 1 << 30));
    assert!((1 << 20..2 << 20).contains(&top.allocated), "{top:?}");
    assert_eq!(bottom.allocated, 0);
    assert!(!top.sealed && !bottom.sealed);
}

#[test]
fn a_sealed_layer_has_no_permission_to_be_written() {
    let folder = Folder::new();
    let disk = folder.qcow2("disk", &[], 1 << 20);
    qemu_io(&disk, ["write -P 1 0 1M"]);
    assert!(seal(&disk, OpenOptions::new()).unwrap().sealed);
    assert_eq!(fs::metadata(&disk).unwrap().mode() & 0o777, 0o444);
    assert!(open(&disk).unwrap().layers().unwrap()[0].sealed);
}

#[test]
fn a_layer_that_is_cut_off_or_unclean_is_not_sealed() {
    let folder = Folder::new();
    let disk = folder.qcow2("disk", &[], 4 << 20);
    qemu_io(&disk, ["write -P 1 0 4M"]);
    let mut content = fs::read(&disk).unwrap();
    fs::write(&disk, &content[..content.len() / 2]).unwrap();
    let mode = fs::metadata(&disk).unwrap().mode();
    let error = seal(&disk, OpenOptions::new()).unwrap_err();
    assert!(matches!(error, ImageError::Damaged { .. }), "{error}");
    // The dirty and the corrupt bit.
    for bit in [1, 2] {
        content[79] = bit;
        fs::write(&disk, &content).unwrap();
        let error = seal(&disk, OpenOptions::new()).unwrap_err();
        assert!(matches!(error, ImageError::Damaged { .. }), "{error}");
    }
    assert_eq!(fs::metadata(&disk).unwrap().mode(), mode);
    // It is still readable: a killed VM may leave such an image.
    open(&disk).unwrap().read_at(0, &mut [0; 4096]).unwrap();
}
