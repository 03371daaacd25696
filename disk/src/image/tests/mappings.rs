use std::{fs::File, io, os::unix::fs::FileExt as _};

use super::{
    super::{FileId, Image, Location, MappedRange, OpenOptions, create_child},
    tools::{Folder, Rng, open, qemu_io, read_all},
};

const KIB: u64 = 1 << 10;

fn runs(image: &Image) -> Vec<MappedRange> {
    let runs: io::Result<Vec<_>> = image.mapped_ranges(0..u64::MAX).collect();
    let runs = runs.unwrap();
    let mut at = 0;
    for run in &runs {
        assert_eq!(run.offset, at);
        assert_ne!(run.length, 0);
        at += run.length;
    }
    assert_eq!(at, image.size());
    runs
}

/// Checks that the bytes are at every returned location.
fn check(image: &Image) {
    let disk = read_all(image, 1 << 20);
    let files: Vec<(FileId, File)> = image
        .layers()
        .unwrap()
        .iter()
        .map(|layer| {
            let id = open(&layer.path).unwrap().file_id(0).unwrap();
            (id, File::open(&layer.path).unwrap())
        })
        .collect();
    for run in runs(image) {
        let range = run.offset as usize..(run.offset + run.length) as usize;
        let mut bytes = vec![0; run.length as usize];
        if let Location::File { file, offset } = run.location {
            let (_, file) = files.iter().find(|(id, _)| *id == file).unwrap();
            let length = file.metadata().unwrap().len().min(offset + run.length) - offset;
            file.read_exact_at(&mut bytes[..length as usize], offset)
                .unwrap();
        }
        assert!(disk[range] == bytes, "{run:?}");
    }
}

#[test]
fn holes_of_a_raw_file_are_zeroes() {
    let folder = Folder::new();
    let path = folder.path("disk");
    let file = File::create(&path).unwrap();
    file.set_len(100 << 30).unwrap();
    file.write_all_at(&[1; 65_536], 1 << 30).unwrap();
    let image = open(&path).unwrap();
    let found = runs(&image);
    assert_eq!(found.len(), 3, "{found:?}");
    assert_eq!(found[0].location, Location::Zero);
    let file = image.file_id(0).unwrap();
    let offset = 1 << 30;
    assert_eq!(found[1].location, Location::File { file, offset });
    assert_eq!(found[1].length, 65_536);
    assert_eq!(image.mapping(offset + 5).unwrap().length, 65_531);
    assert!(image.mapping(100 << 30).is_err());
}

#[test]
fn places_are_where_the_bytes_are() {
    let folder = Folder::new();
    let size = 4096 * KIB;
    folder.file("base", Rng::new(5).bytes(size as usize));
    for (number, cluster) in ["4K", "64K", "512"].iter().enumerate() {
        let base = match number {
            0 => ("base".to_owned(), "raw"),
            _ => ((number - 1).to_string(), "qcow2"),
        };
        let option = format!("cluster_size={cluster}");
        let layer = folder.qcow2_above(&number.to_string(), (&base.0, base.1), &[&option]);
        let at = number as u64 * 300 * KIB;
        let zero_at = at + 100 * KIB;
        let commands = [
            format!("write -P {} {at} 70k", number + 1),
            format!("write -z {zero_at} 64k"),
        ];
        qemu_io(&layer, commands);
        check(&open(&layer).unwrap());
    }
}

#[test]
fn what_two_children_share_is_in_the_same_place() {
    let folder = Folder::new();
    let size = 64 * 64 * KIB;
    folder.file("base", Rng::new(6).bytes(size as usize));
    let options = OpenOptions::new();
    for name in ["one", "other"] {
        create_child(folder.path("base"), folder.path(name), options.clone()).unwrap();
    }
    qemu_io(&folder.path("one"), ["write -P 1 128k 512"]);
    let (one, other) = (
        open(&folder.path("one")).unwrap(),
        open(&folder.path("other")).unwrap(),
    );
    let mut at = 0;
    let mut different = Vec::new();
    while at < size {
        let (mine, its) = (one.mapping(at).unwrap(), other.mapping(at).unwrap());
        let length = mine.length.min(its.length);
        if mine.location != its.location {
            different.push((at, length));
        }
        at += length;
    }
    assert_eq!(different, [(128 * KIB, 64 * KIB)]);
}

#[test]
fn compressed_clusters_have_places_of_their_own() {
    let folder = Folder::new();
    let disk = folder.qcow2("disk", &[], 256 * KIB);
    qemu_io(&disk, ["write -c -P 3 0 64k", "write -c -P 4 64k 64k"]);
    let image = open(&disk).unwrap();
    let found = runs(&image);
    let [
        Location::Compressed { offset: first, .. },
        Location::Compressed { offset: second, .. },
    ] = [found[0].location, found[1].location]
    else {
        panic!("{found:?}");
    };
    assert_ne!(first, second);
    let later = image.mapping(1000).unwrap();
    assert_eq!(later.length, 64 * KIB - 1000);
    let file = image.file_id(0).unwrap();
    let within = 1000;
    assert_eq!(
        later.location,
        Location::Compressed {
            file,
            offset: first,
            within
        }
    );
}
