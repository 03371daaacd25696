use std::{
    fs::{self, File},
    os::unix::fs::FileExt as _,
    path::Path,
    process::Command,
};

use super::{
    super::{ImageDamage, ImageError, partition::partitions},
    tools::{COMPRESSION_TYPES, Folder, Rng, open, qemu_img, qemu_io},
};

const MIB: u64 = 1 << 20;

/// Reads parts of everything. Ends whatever the image contains.
fn read_everything(path: &Path) -> Result<(), ImageError> {
    let image = open(path)?;
    let size = image.size();
    let mut buffer = vec![0; 16_384];
    let mut failed = false;
    for part in 0..16 {
        let offset = size / 16 * part;
        let length = buffer.len().min((size - offset) as usize);
        failed |= image.read_at(offset, &mut buffer[..length]).is_err();
    }
    let mut ranges = image.mapped_ranges(0..size).take(2000);
    failed |= ranges.any(|range| range.is_err());
    failed |= image.layers().is_err() || partitions(&image).is_err();
    match failed {
        false => Ok(()),
        true => Err(ImageError::Cancelled),
    }
}

/// Creates an image with data, zeros, compressed clusters, a snapshot and a
/// base.
fn sample_image(folder: &Folder, options: &[&str]) -> Vec<u8> {
    folder.file("base", Rng::new(10).bytes(2 * MIB as usize));
    let disk = folder.qcow2_above("disk", ("base", "raw"), options);
    qemu_io(
        &disk,
        [
            "write -P 1 0 200k",
            "write -z 300k 64k",
            "write -c -P 2 512k 64k",
            "write -P 3 1536k 64k",
        ],
    );
    let mut command = Command::new("qemu-img");
    qemu_img(command.args(["snapshot", "-c", "one"]).arg(&disk));
    fs::read(disk).unwrap()
}

/// Returns the offsets of the header and the tables.
fn structures(image: &[u8], cluster: usize) -> Vec<usize> {
    let word = |at: usize| u64::from_be_bytes(image[at..at + 8].try_into().unwrap());
    let l1 = word(40) as usize;
    let l2 = (word(l1) & 0x00ff_ffff_ffff_fe00) as usize;
    let header = 0..200;
    let l1 = l1..l1 + 64;
    let l2 = l2..l2 + cluster.min(400);
    header.chain(l1).chain(l2).collect()
}

#[test]
fn flipped_bits_do_no_harm() {
    for (options, cluster) in [("compat=1.1", 65_536), ("cluster_size=512", 512)] {
        let folder = Folder::new();
        let whole = sample_image(&folder, &[options]);
        let places = structures(&whole, cluster);
        let disk = folder.path("disk");
        let file = File::options().write(true).open(&disk).unwrap();
        let mut rng = Rng::new(11);
        let mut harmless = 0;
        for _ in 0..800 {
            let flips: Vec<(usize, u8)> = (0..1 + rng.below(3))
                .map(|_| {
                    let at = places[rng.below(places.len() as u64) as usize];
                    (at, 1 << rng.below(8))
                })
                .collect();
            for (at, bit) in &flips {
                file.write_all_at(&[whole[*at] ^ bit], *at as u64).unwrap();
            }
            harmless += usize::from(read_everything(&disk).is_ok());
            for (at, _) in &flips {
                file.write_all_at(&[whole[*at]], *at as u64).unwrap();
            }
        }
        // Some flips hit unused bytes, some matter.
        assert!((50..750).contains(&harmless), "{harmless}");
        read_everything(&disk).unwrap();
    }
}

#[test]
fn an_image_cut_off_anywhere_does_no_harm() {
    let folder = Folder::new();
    let whole = sample_image(&folder, &[]);
    let disk = folder.path("disk");
    let file = File::options().write(true).open(&disk).unwrap();
    for length in (0..whole.len()).rev().step_by(997) {
        file.set_len(length as u64).unwrap();
        let _ = read_everything(&disk);
    }
    // Without its header, it is a raw file.
    file.set_len(3).unwrap();
    assert_eq!(open(&disk).unwrap().size(), 3);
}

/// Overwrites a header field and returns the error from opening the image.
fn with_field(folder: &Folder, whole: &[u8], at: usize, value: &[u8]) -> ImageError {
    let mut content = whole.to_vec();
    content[at..at + value.len()].copy_from_slice(value);
    let disk = folder.file("disk", content);
    let error = open(&disk).unwrap_err();
    assert!(error.to_string().contains("disk"), "{error}");
    error
}

#[test]
fn senseless_headers_are_told_apart() {
    let folder = Folder::new();
    let whole = sample_image(&folder, &[]);
    let header = |error: ImageError| match error {
        ImageError::Damaged {
            damage: ImageDamage::Header(field),
            ..
        } => field,
        other => panic!("{other}"),
    };
    for bits in [0_u32, 8, 22, 63, u32::MAX] {
        let error = with_field(&folder, &whole, 20, &bits.to_be_bytes());
        assert_eq!(header(error), "cluster size");
    }
    for size in [1 << 47, 1 << 63, u64::MAX] {
        let error = with_field(&folder, &whole, 24, &size.to_be_bytes());
        assert!(matches!(error, ImageError::TooLarge { .. }), "{error}");
    }
    // More than the L1 table can map.
    let error = with_field(&folder, &whole, 24, &(1_u64 << 40).to_be_bytes());
    assert_eq!(header(error), "table size");
    for offset in [1, 512, 1 << 62, u64::MAX, whole.len() as u64] {
        let error = with_field(&folder, &whole, 40, &offset.to_be_bytes());
        let damaged = matches!(
            error,
            ImageError::Damaged {
                damage: ImageDamage::Table { .. },
                ..
            }
        );
        assert!(damaged, "{error}");
    }
    for length in [0_u32, 71, 103, 1 << 20, u32::MAX] {
        let error = with_field(&folder, &whole, 100, &length.to_be_bytes());
        assert_eq!(header(error), "length");
    }
    for name in [1_u64, 65_536, u64::MAX] {
        let error = with_field(&folder, &whole, 8, &name.to_be_bytes());
        assert_eq!(header(error), "backing file name");
    }
    for length in [1024_u32, 65_536, u32::MAX] {
        let error = with_field(&folder, &whole, 16, &length.to_be_bytes());
        assert_eq!(header(error), "backing file name");
    }
    // A snapshot table of 4 billion entries and invalid reference counts: only
    // writers use them.
    let mut content = whole.clone();
    content[48..72].fill(0xff);
    read_everything(&folder.file("disk", content)).unwrap();
}

#[test]
fn an_image_that_claims_much_costs_little() {
    // 1 TiB, mapped by one L2 table in a sparse file.
    let folder = Folder::new();
    let disk = folder.qcow2("disk", &["cluster_size=2M"], 1 << 40);
    let file = File::options().write(true).read(true).open(&disk).unwrap();
    let l1 = read_word(&file, 40);
    let length = file.metadata().unwrap().len().next_multiple_of(2 * MIB);
    file.set_len(length + 4 * MIB).unwrap();
    for number in 0..2 {
        file.write_all_at(&length.to_be_bytes(), l1 + number * 8)
            .unwrap();
    }
    // The L2 table has zeros in every other cluster, so no range is long.
    let entries: Vec<u8> = (0..MIB / 8)
        .flat_map(|number| (number % 2).to_be_bytes())
        .collect();
    file.write_all_at(&entries, length).unwrap();
    file.write_all_at(&entries, length + MIB).unwrap();
    let image = open(&disk).unwrap();
    let before = resident();
    let runs = image
        .mapped_ranges(0..image.size())
        .filter(|run| run.is_ok())
        .count();
    assert_eq!(runs as u64, (1 << 40) / (2 * MIB));
    let grown = resident().saturating_sub(before);
    assert!(grown < 64 * MIB, "{grown} bytes more");
}

fn read_word(file: &File, at: u64) -> u64 {
    let mut word = [0; 8];
    file.read_exact_at(&mut word, at).unwrap();
    u64::from_be_bytes(word)
}

/// Returns the resident memory of the process in bytes.
fn resident() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = text.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

#[test]
fn rubbish_that_claims_to_be_compressed_is_told() {
    for compression in COMPRESSION_TYPES {
        let folder = Folder::new();
        let option = format!("compression_type={compression}");
        let disk = folder.qcow2("disk", &[&option], MIB);
        qemu_io(&disk, ["write -c -P 1 0 64k"]);
        let image = open(&disk).unwrap();
        let run = image.mapping(0).unwrap();
        let super::super::Location::Compressed { offset, .. } = run.location else {
            panic!("{run:?}");
        };
        let file = File::options().write(true).open(&disk).unwrap();
        for rubbish in [vec![0; 64], vec![0xff; 64], Rng::new(12).bytes(64)] {
            file.write_all_at(&rubbish, offset).unwrap();
            let error = open(&disk).unwrap().read_at(0, &mut [0; 512]).unwrap_err();
            let error = error.downcast::<ImageError>().unwrap();
            let damaged = matches!(
                error,
                ImageError::Damaged {
                    damage: ImageDamage::Compressed { at: 0 },
                    ..
                }
            );
            assert!(damaged, "{error}");
        }
        // Its neighbours can still be read.
        let image = open(&disk).unwrap();
        image.read_at(65_536, &mut [0; 512]).unwrap();
        assert_eq!(image.size(), MIB);
    }
}

#[test]
fn a_table_that_is_also_a_part_of_another_reads_as_either() {
    let folder = Folder::new();
    let disk = folder.qcow2("disk", &["cluster_size=512"], MIB);
    qemu_io(&disk, ["write -P 7 0 512"]);
    let mut content = fs::read(&disk).unwrap();
    let word = |bytes: &[u8], at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().unwrap());
    // The L1 table of 32 entries is also the first L2 table of 64 entries,
    // followed by something else.
    let l1 = word(&content, 40) as usize;
    let l2 = (word(&content, l1) & 0x00ff_ffff_ffff_fe00) as usize;
    let data = content[l2..l2 + 8].to_vec();
    content[l1..l1 + 8].copy_from_slice(&(l1 as u64).to_be_bytes());
    content[l1 + 40 * 8..l1 + 41 * 8].copy_from_slice(&data);
    let disk = folder.file("disk", content);
    let mut buffer = [0; 512];
    open(&disk).unwrap().read_at(40 * 512, &mut buffer).unwrap();
    assert_eq!(buffer, [7; 512]);
}

#[test]
fn names_in_errors_carry_no_control_bytes() {
    let folder = Folder::new();
    let whole = sample_image(&folder, &[]);
    let at = u64::from_be_bytes(whole[8..16].try_into().unwrap()) as usize;
    let error = with_field(&folder, &whole, at, b"\x1b[:a");
    assert!(
        matches!(error, ImageError::BackingProtocol { .. }),
        "{error}"
    );
    assert!(!error.to_string().contains('\x1b'));
}
