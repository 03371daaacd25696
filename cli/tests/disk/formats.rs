//! Image formats that are not supported, and marks in those that are.

use std::{fs, os::unix::fs::FileExt as _, path::Path};

use crate::{
    program::{Ended, disk},
    sample::{Sample, run, tool},
};

fn on(command: &str, image: &Path) -> Ended {
    disk([command.as_ref(), image.as_os_str()])
}

#[test]
fn images_of_other_formats_are_named_with_what_to_do() {
    let sample = Sample::new();
    for (format, name) in [
        ("vmdk", "a VMware image (vmdk)"),
        ("vdi", "a VirtualBox image (vdi)"),
        ("vhdx", "a Hyper-V image (vhdx)"),
        ("vpc", "a Virtual PC image (vhd)"),
        ("qed", "a QED image (qed)"),
        ("parallels", "a Parallels image (parallels)"),
    ] {
        let image = sample.path(format);
        let mut convert = tool("qemu-img");
        convert.args(["convert", "-O", format]).arg(sample.image());
        run(convert.arg(&image));
        for command in ["ls", "info"] {
            on(command, &image).assert_failed(125, name);
            on(command, &image).assert_failed(125, "`qemu-img convert -O qcow2`");
        }
        let new = sample.path("child.qcow2");
        let words = ["child".as_ref(), image.as_os_str(), new.as_os_str()];
        disk(words).assert_failed(125, name);
        let words = ["ls".as_ref(), image.as_os_str(), "--format".as_ref()];
        let raw = disk(words.into_iter().chain(["raw".as_ref()]));
        raw.assert_failed(125, "neither an ext2, ext3 or ext4 file system");
    }
    let image = sample.path("disk.img.gz");
    fs::write(&image, b"\x1f\x8b\x08 and so on").unwrap();
    on("ls", &image).assert_failed(125, "`gunzip`");
}

#[test]
fn a_raw_disk_that_begins_like_another_format_is_read() {
    let sample = Sample::new();
    let file = fs::OpenOptions::new().write(true).open(sample.image());
    file.unwrap().write_all_at(b"KDMV", 0).unwrap();
    assert!(on("ls", &sample.image()).printed().contains("etc\n"));
}

#[test]
fn an_image_that_is_marked_as_corrupt_is_read_with_a_warning() {
    let sample = Sample::new();
    let image = sample.path("corrupt.qcow2");
    let mut convert = tool("qemu-img");
    convert.args(["convert", "-O", "qcow2"]).arg(sample.image());
    run(convert.arg(&image));
    on("ls", &image).printed();
    // The incompatible feature bits, big-endian.
    let file = fs::OpenOptions::new().write(true).open(&image).unwrap();
    file.write_all_at(&[2], 79).unwrap();
    for command in ["ls", "tree", "find", "du", "info"] {
        on(command, &image).assert_failed(0, "is marked as corrupt");
        on(command, &image).assert_failed(0, "`qemu-img check -r all`");
    }
    let flat = sample.path("flat");
    let words = ["flatten".as_ref(), image.as_os_str(), flat.as_os_str()];
    disk(words).assert_failed(0, "is marked as corrupt");
    let words = ["info".as_ref(), image.as_os_str(), "--json".as_ref()];
    assert_eq!(disk(words).json()[0]["layers"][0]["corrupt"], true);
}
