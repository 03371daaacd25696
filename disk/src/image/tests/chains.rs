use std::{fs, os::unix::fs::symlink, process::Command};

use super::{
    super::{Format, Image, ImageError, OpenOptions, create_child},
    tools::{COMPRESSION_TYPES, Folder, Rng, converted, open, qemu_img, qemu_io, read_all},
};

const MIB: u64 = 1 << 20;

/// Returns random `qemu-io` writes of data and zeros, whole clusters and parts,
/// and applies the same to a model of the disk.
fn random_writes(rng: &mut Rng, size: u64, model: &mut [u8], count: usize) -> Vec<String> {
    let mut commands = Vec::new();
    for _ in 0..count {
        let length = (1 + rng.below(400)) * 512;
        let offset = rng.below((size - length) / 512) * 512;
        let range = offset as usize..(offset + length) as usize;
        if rng.below(4) == 0 {
            model[range].fill(0);
            commands.push(format!("write -z {offset} {length}"));
        } else {
            let byte = 1 + rng.below(255) as u8;
            model[range].fill(byte);
            commands.push(format!("write -P {byte} {offset} {length}"));
        }
    }
    commands
}

#[test]
fn every_kind_of_qcow2_reads_as_qemu_wrote_it() {
    for options in [
        "compat=1.1",
        "compat=0.10",
        "cluster_size=512",
        "cluster_size=4096",
        "cluster_size=2M",
        "lazy_refcounts=on",
        "refcount_bits=1",
        "preallocation=metadata",
        #[cfg(feature = "zstd")]
        "compression_type=zstd",
    ] {
        let folder = Folder::new();
        // The last cluster is partial.
        let size = 8 * MIB + 512;
        let disk = folder.qcow2("disk", &[options], size);
        let mut model = vec![0; size as usize];
        qemu_io(&disk, random_writes(&mut Rng::new(1), size, &mut model, 60));
        let image = open(&disk).unwrap();
        assert_eq!(image.size(), size);
        assert!(read_all(&image, 3 * MIB as usize) == model, "{options}");
        assert!(read_all(&image, 1000) == model, "{options}");
    }
}

#[test]
fn a_chain_of_layers_reads_as_one_disk() {
    let folder = Folder::new();
    let mut rng = Rng::new(2);
    let size = 6 * MIB;
    let mut model = rng.bytes(size as usize);
    folder.file("base.raw", &model);
    let mut below = ("base.raw".to_owned(), "raw");
    for (number, cluster) in ["64K", "512", "2M", "4K", "64K"].iter().enumerate() {
        let name = format!("layer{number}");
        let option = format!("cluster_size={cluster}");
        let layer = folder.qcow2_above(&name, (&below.0, below.1), &[&option]);
        qemu_io(&layer, random_writes(&mut rng, size, &mut model, 20));
        below = (name, "qcow2");
    }
    let top = folder.path("layer4");
    let image = open(&top).unwrap();
    assert!(read_all(&image, MIB as usize) == model);
    assert!(read_all(&image, 4096) == model);
    assert!(converted(&folder, &top) == model);
}

#[test]
fn compressed_clusters_are_unpacked() {
    for compression in COMPRESSION_TYPES {
        // More than one cluster of each size.
        for (cluster, pieces) in [("512", 30), ("64K", 90), ("2M", 300)] {
            let folder = Folder::new();
            let mut rng = Rng::new(3);
            // Some of it is compressible.
            let content: Vec<u8> = (0..pieces)
                .flat_map(|number| match number % 3 {
                    0 => rng.bytes(10_240),
                    1 => vec![number as u8; 10_240],
                    _ => rng.bytes(16).repeat(640),
                })
                .collect();
            let raw = folder.file("disk.raw", &content);
            let compressed = folder.path("compressed");
            let option = format!("compression_type={compression},cluster_size={cluster}");
            let mut command = Command::new("qemu-img");
            command.args(["convert", "-c", "-f", "raw", "-O", "qcow2", "-o", &option]);
            qemu_img(command.args([&raw, &compressed]));
            let image = open(&compressed).unwrap();
            assert!(read_all(&image, MIB as usize) == content, "{option}");
            assert!(read_all(&image, 1 << 15) == content, "{option}");
        }
    }
}

#[cfg(feature = "zstd")]
#[test]
fn a_cluster_may_be_packed_in_several_frames() {
    let folder = Folder::new();
    let disk = folder.qcow2("disk", &["compression_type=zstd"], MIB);
    qemu_io(&disk, ["write -c -P 1 0 64k"]);
    let run = open(&disk).unwrap().mapping(0).unwrap();
    let super::super::Location::Compressed { offset, .. } = run.location else {
        panic!("{run:?}");
    };
    let mut content = fs::read(&disk).unwrap();
    let half = |byte| zstd::encode_all(&[byte; 32_768][..], 3).unwrap();
    let frames = [half(2), half(3)].concat();
    content.truncate(offset as usize);
    content.extend_from_slice(&frames);
    fs::write(&disk, content).unwrap();

    let mut expected = [[2; 32_768], [3; 32_768]].concat();
    expected.resize(MIB as usize, 0);
    assert!(converted(&folder, &disk) == expected, "QEMU reads it so");
    assert!(read_all(&open(&disk).unwrap(), MIB as usize) == expected);
}

#[test]
fn a_layer_larger_than_the_one_beneath_goes_on_with_zeroes() {
    let folder = Folder::new();
    let base = folder.file("base", vec![7; 100_000]);
    let child = folder.path("child");
    let mut command = Command::new("qemu-img");
    command.args(["create", "-q", "-f", "qcow2", "-F", "raw", "-b"]);
    qemu_img(command.args([&base, &child]).arg("1M"));
    let disk = read_all(&open(&child).unwrap(), MIB as usize);
    assert!(disk[..100_000].iter().all(|byte| *byte == 7));
    assert!(disk[100_000..].iter().all(|byte| *byte == 0));
    assert_eq!(disk.len() as u64, MIB);
}

#[test]
fn nothing_is_read_beyond_the_end() {
    let folder = Folder::new();
    let image = open(&folder.qcow2("disk", &[], MIB)).unwrap();
    image.read_at(MIB, &mut []).unwrap();
    for offset in [MIB, MIB - 1, u64::MAX] {
        let error = image.read_at(offset, &mut [0; 2]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
    }
}

#[test]
fn a_raw_disk_that_looks_like_qcow2_is_raw_if_the_caller_says_so() {
    let folder = Folder::new();
    let secret = folder.file("secret", vec![1; 4096]);
    let name = secret.to_str().unwrap();
    let evil = folder.qcow2_above("evil", (name, "raw"), &[]);
    let content = fs::read(&evil).unwrap();
    let raw = Image::open(&evil, OpenOptions::new().format(Format::Raw)).unwrap();
    assert!(read_all(&raw, 65_536) == content);

    // The format of a backing file is never detected.
    let child = folder.qcow2_above("child", ("evil", "raw"), &[]);
    let image = open(&child).unwrap();
    assert_eq!(image.layers().unwrap().len(), 2);
    assert!(read_all(&image, 65_536)[..content.len()] == content);
}

#[test]
fn a_backing_file_without_a_format_is_raw_or_refused() {
    let folder = Folder::new();
    folder.file("base", vec![5; 4096]);
    let child = folder.qcow2_above("child", ("base", "raw"), &["compat=0.10"]);
    forget_backing_format(&child);
    assert!(read_all(&open(&child).unwrap(), 4096) == vec![5; 4096]);

    folder.qcow2("base", &[], 4096);
    let error = open(&child).unwrap_err();
    assert!(
        matches!(&error, ImageError::BackingFormat { format, .. } if format.is_empty()),
        "{error}"
    );
}

/// Changes the type of the backing format extension to an unknown one.
fn forget_backing_format(image: &std::path::Path) {
    let mut content = fs::read(image).unwrap();
    let known = 0xe279_2aca_u32.to_be_bytes();
    let at = content.windows(4).position(|bytes| bytes == known).unwrap();
    content[at] = 1;
    fs::write(image, content).unwrap();
}

#[test]
fn backing_files_are_followed_only_where_it_is_allowed() {
    let folder = Folder::new();
    fs::create_dir(folder.path("inside")).unwrap();
    fs::create_dir(folder.path("outside")).unwrap();
    folder.file("outside/base", vec![9; 65_536]);
    let base = folder.path("outside/base");
    let outside = |path: &str| {
        let error = open(&folder.path(path)).unwrap_err();
        assert!(
            matches!(&error, ImageError::BackingNotAllowed { path } if *path == base),
            "{error}"
        );
    };
    folder.qcow2_above("inside/absolute", (base.to_str().unwrap(), "raw"), &[]);
    outside("inside/absolute");
    folder.qcow2_above("inside/dots", ("../outside/base", "raw"), &[]);
    outside("inside/dots");
    symlink("../outside/base", folder.path("inside/link")).unwrap();
    folder.qcow2_above("inside/linked", ("link", "raw"), &[]);
    outside("inside/linked");
    symlink("../outside", folder.path("inside/folder")).unwrap();
    folder.qcow2_above("inside/through", ("folder/base", "raw"), &[]);
    outside("inside/through");

    // A directory whose name only starts the same is not allowed.
    let allowed = OpenOptions::new().allow_backing(folder.path("out"));
    fs::create_dir(folder.path("out")).unwrap();
    assert!(Image::open(folder.path("inside/dots"), allowed.clone()).is_err());
    // The directory and the image may be given through a symlink.
    symlink("outside", folder.path("alias")).unwrap();
    symlink("inside/dots", folder.path("image")).unwrap();
    let allowed = OpenOptions::new().allow_backing(folder.path("alias"));
    for path in ["inside/dots", "inside/linked", "inside/through", "image"] {
        let image = Image::open(folder.path(path), allowed.clone()).unwrap();
        assert!(read_all(&image, 65_536) == vec![9; 65_536]);
    }
}

#[test]
fn only_regular_files_are_opened() {
    let folder = Folder::new();
    let pipe = folder.path("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    folder.file("base", [0; 512]);
    let child = folder.qcow2_above("child", ("base", "raw"), &[]);
    fs::remove_file(folder.path("base")).unwrap();
    symlink("pipe", folder.path("base")).unwrap();
    for path in [pipe, child, folder.path("")] {
        let error = open(&path).unwrap_err();
        assert!(matches!(error, ImageError::NotAFile { .. }), "{error}");
    }
    let error = open(&folder.path("missing")).unwrap_err();
    assert!(matches!(error, ImageError::Read { .. }), "{error}");
}

#[test]
fn what_is_no_path_is_not_followed() {
    let folder = Folder::new();
    let child = folder.qcow2("child", &[], MIB);
    for name in [
        "json:{\"driver\":\"file\"}",
        "nbd:localhost:10809",
        "http://localhost/x",
        "file:base",
    ] {
        let mut command = Command::new("qemu-img");
        command.args(["rebase", "-u", "-f", "qcow2", "-F", "raw", "-b", name]);
        qemu_img(command.arg(&child));
        let error = open(&child).unwrap_err();
        assert!(
            matches!(&error, ImageError::BackingProtocol { name: found, .. } if found == name),
            "{error}"
        );
    }
}

#[test]
fn loops_and_endless_chains_end() {
    let folder = Folder::new();
    let first = folder.qcow2("0", &[], MIB);
    for number in 1..64 {
        let below = folder.path(&(number - 1).to_string());
        let child = folder.path(&number.to_string());
        create_child(below, child, OpenOptions::new()).unwrap();
    }
    assert_eq!(
        open(&folder.path("63")).unwrap().layers().unwrap().len(),
        64
    );
    let last = folder.qcow2_above("64", ("63", "qcow2"), &[]);
    let error = open(&last).unwrap_err();
    assert!(
        matches!(error, ImageError::TooManyLayers { limit: 64 }),
        "{error}"
    );

    let mut command = Command::new("qemu-img");
    command.args(["rebase", "-u", "-f", "qcow2", "-F", "qcow2", "-b", "2"]);
    qemu_img(command.arg(&first));
    let error = open(&first).unwrap_err();
    assert!(matches!(error, ImageError::Loop { .. }), "{error}");
    fs::hard_link(&first, folder.path("other name")).unwrap();
    let error = open(&folder.path("other name")).unwrap_err();
    assert!(matches!(error, ImageError::Loop { .. }), "{error}");
}

#[test]
fn what_is_not_supported_is_refused_by_name() {
    let folder = Folder::new();
    let data = format!("data_file={}", folder.path("data").display());
    for (option, wanted) in [
        (data.as_str(), "an external data file"),
        ("extended_l2=on", "extended L2 entries"),
        #[cfg(not(feature = "zstd"))]
        (
            "compression_type=zstd",
            "zstd, without which vmcell-disk was compiled (feature `zstd`)",
        ),
    ] {
        let image = folder.qcow2("disk", &[option], MIB);
        let error = open(&image).unwrap_err();
        assert!(
            matches!(&error, ImageError::Unsupported { feature, .. } if feature == wanted),
            "{error}"
        );
    }
    let path = folder.qcow2("disk", &[], MIB);
    let whole = fs::read(&path).unwrap();
    for (at, value, wanted) in [
        (7, 4, "version 4 of qcow2"),
        (35, 1, "encryption"),
        (72, 0x80, "an unknown feature (bit 63)"),
    ] {
        let mut content = whole.clone();
        content[at] = value;
        fs::write(&path, content).unwrap();
        let error = open(&path).unwrap_err();
        assert!(
            matches!(&error, ImageError::Unsupported { feature, .. } if feature == wanted),
            "{error}"
        );
    }
}

#[test]
fn several_threads_read_one_image() {
    let folder = Folder::new();
    let size = 4 * MIB;
    let mut model = vec![0; size as usize];
    let disk = folder.qcow2("disk", &["cluster_size=512"], size);
    qemu_io(&disk, random_writes(&mut Rng::new(4), size, &mut model, 40));
    let image = open(&disk).unwrap();
    std::thread::scope(|scope| {
        for piece in [512, 4096, 10_000, 1 << 20] {
            let (image, model) = (&image, &model);
            scope.spawn(move || assert!(read_all(image, piece) == *model));
        }
    });
}
