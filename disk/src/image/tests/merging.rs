use std::{
    collections::BTreeMap,
    fs::{self, File},
    ops::ControlFlow,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use proptest::prelude::*;

use super::{
    super::{
        Format, Image, ImageDamage, ImageError, Location, MergeProgress, OpenOptions, create_child,
        merge_layers,
        qcow2::{CLUSTER, LayerWriter},
    },
    tools::{COMPRESSION_TYPES, Folder, Rng, open, qemu_img, qemu_io, read_all},
};

const MIB: u64 = 1 << 20;

fn go_on(_: MergeProgress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn merge(image: &Path, count: usize, to: &Path) -> Result<u64, ImageError> {
    let mut written = 0;
    merge_layers(&open(image)?, count, to, u64::MAX, &mut |progress| {
        written = progress.written;
        ControlFlow::Continue(())
    })?;
    let mut command = Command::new("qemu-img");
    qemu_img(command.arg("check").arg(to));
    Ok(written)
}

/// Creates a layer above another one, and writes to it.
fn child(folder: &Folder, below: &Path, name: &str, commands: &[&str]) -> PathBuf {
    let child = folder.path(name);
    create_child(below, &child, OpenOptions::new()).unwrap();
    qemu_io(&child, commands);
    child
}

/// Compares two images as QEMU sees them.
fn compare(one: &Path, other: &Path) {
    let mut command = Command::new("qemu-img");
    qemu_img(command.arg("compare").args([one, other]));
}

/// Returns the layer that stores an offset; `None` if it reads as zeros.
fn stored_at(path: &Path, offset: u64) -> Option<PathBuf> {
    let image = open(path).unwrap();
    match image.mapping(offset).unwrap().location {
        Location::Zero => None,
        Location::File { file, .. } | Location::Compressed { file, .. } => {
            let number = (0..).find(|it| image.file_id(*it) == Some(file)).unwrap();
            Some(image.layers().unwrap()[number].path.clone())
        }
    }
}

#[test]
fn the_topmost_layer_wins_and_what_is_below_stays_there() {
    let folder = Folder::new();
    let base = folder.file("base", Rng::new(1).bytes(8 << 20));
    let one = child(&folder, &base, "one", &["write -P 1 0 1M"]);
    let two = child(&folder, &one, "two", &["write -P 2 512k 1M"]);
    let three = child(&folder, &two, "three", &["write -P 3 1M 1M"]);
    let merged = folder.path("merged");
    let written = merge(&three, 2, &merged).unwrap();
    // 512 KiB to 2 MiB, and a table.
    assert_eq!(written, 3 * MIB / 2 + CLUSTER);
    compare(&three, &merged);
    let layers = open(&merged).unwrap().layers().unwrap();
    let paths: Vec<_> = layers.iter().map(|layer| &layer.path).collect();
    assert_eq!(paths, [&merged, &one, &base]);
    assert_eq!(stored_at(&merged, 0), Some(one));
    assert_eq!(stored_at(&merged, MIB), Some(merged.clone()));
    assert_eq!(stored_at(&merged, 2 * MIB), Some(base));
    // It takes writes.
    qemu_io(&merged, ["write -P 9 3M 512", "read -P 9 3M 512"]);
    let mut command = Command::new("qemu-img");
    qemu_img(command.arg("check").arg(&merged));
}

#[test]
fn all_layers_together_need_no_backing_file_and_none_are_a_child() {
    let folder = Folder::new();
    let base = folder.file("base", Rng::new(1).bytes(1_000_000));
    let one = child(&folder, &base, "one", &["write -P 1 64k 200k"]);
    for count in [2, 7] {
        let all = folder.path(&format!("all{count}"));
        merge(&one, count, &all).unwrap();
        assert_eq!(open(&all).unwrap().layers().unwrap().len(), 1);
        compare(&one, &all);
    }
    let none = folder.path("none");
    assert_eq!(merge(&one, 0, &none).unwrap(), 0);
    assert_eq!(open(&none).unwrap().layers().unwrap().len(), 3);
    compare(&one, &none);
}

#[test]
fn zeros_hide_data_below_and_are_left_out_where_there_is_none() {
    let folder = Folder::new();
    let base = folder.path("base");
    File::create(&base).unwrap().set_len(2 << 30).unwrap();
    let one = child(&folder, &base, "one", &["write -P 1 0 1M"]);
    let two = child(&folder, &one, "two", &["write -P 2 1M 1M"]);
    // Over data of below, over data that is merged, over nothing, and data of zeros.
    let commands = [
        "write -z 512k 1M",
        "write -z 1G 256M",
        "write -P 0 64k 64k",
        "write -P 0 1536M 1M",
    ];
    let three = child(&folder, &two, "three", &commands);
    let merged = folder.path("merged");
    // 1.5 MiB to 2 MiB of data, and one table: what lies at 1 GiB needs none.
    assert_eq!(merge(&three, 2, &merged).unwrap(), MIB / 2 + CLUSTER);
    compare(&three, &merged);
    for (offset, expected) in [
        (0, Some(&one)),
        (64 * 1024, None),
        (128 * 1024, Some(&one)),
        (512 * 1024, None),
        (MIB, None),
        (3 * MIB / 2, Some(&merged)),
        (2 * MIB, None),
    ] {
        assert_eq!(stored_at(&merged, offset).as_ref(), expected, "{offset}");
    }
}

#[test]
fn a_layer_that_is_smaller_hides_what_is_below_its_end() {
    let folder = Folder::new();
    let base = folder.file("base", Rng::new(1).bytes(8 << 20));
    let small = folder.path("small");
    let mut command = Command::new("qemu-img");
    command.args(["create", "-q", "-f", "qcow2", "-b", "base", "-F", "raw"]);
    qemu_img(command.arg(&small).arg((3 * MIB + 512).to_string()));
    let large = folder.path("large");
    let mut command = Command::new("qemu-img");
    command.args(["create", "-q", "-f", "qcow2", "-b", "small", "-F", "qcow2"]);
    qemu_img(command.arg(&large).arg((16 * MIB).to_string()));
    qemu_io(&large, ["write -P 1 5M 1M"]);
    let merged = folder.path("merged");
    merge(&large, 2, &merged).unwrap();
    compare(&large, &merged);
    let layers = open(&merged).unwrap().layers().unwrap();
    assert_eq!((layers[0].size, &layers[1].path), (16 * MIB, &base));
}

/// Only what was written is read, not the disk.
#[test]
fn a_sparse_disk_of_100_gib_takes_milliseconds() {
    let folder = Folder::new();
    let base = folder.path("base");
    let size = 100 << 30;
    File::create(&base).unwrap().set_len(size).unwrap();
    let mut top = base.clone();
    for number in 0..10 {
        let at = number * 9 + 3;
        let commands = [format!("write -P 7 {at}G 64k"), "write -P 8 50G 4k".into()];
        let commands = commands.each_ref().map(String::as_str);
        top = child(&folder, &top, &number.to_string(), &commands);
    }
    let merged = folder.path("merged");
    let image = open(&top).unwrap();
    let start = Instant::now();
    let mut calls = 0;
    let layer = merge_layers(&image, 10, &merged, u64::MAX, &mut |_| {
        calls += 1;
        ControlFlow::Continue(())
    });
    let took = start.elapsed();
    eprintln!("100 GiB with 10 layers in {took:?}, {calls} calls");
    assert_eq!(layer.unwrap().size, size);
    assert!(calls < 1000, "{calls}");
    // Generous, for slow or busy machines.
    assert!(took.as_secs() < 5, "{took:?}");
    compare(&top, &merged);
    let mut command = Command::new("qemu-img");
    qemu_img(command.arg("check").arg(&merged));
}

#[test]
fn ten_layers_of_10_mb_are_copied_at_the_speed_of_the_disk() {
    let folder = Folder::new();
    let mut top = folder.path("base");
    File::create(&top).unwrap().set_len(1 << 30).unwrap();
    for number in 0..10 {
        let write = format!("write -P {} {}M 10M", number + 1, number * 9);
        top = child(&folder, &top, &number.to_string(), &[&write]);
    }
    let merged = folder.path("merged");
    let image = open(&top).unwrap();
    let start = Instant::now();
    merge_layers(&image, 10, &merged, u64::MAX, &mut go_on).unwrap();
    eprintln!("10 layers of 10 MiB in {:?}", start.elapsed());
    compare(&top, &merged);
}

/// A block counts the references of 2 GiB.
#[test]
fn a_file_with_several_blocks_of_reference_counts_is_sound() {
    let folder = Folder::new();
    let path = folder.path("layer");
    let file = File::create_new(&path).unwrap();
    let mut writer = LayerWriter::new(&file, 16 << 30, None).unwrap();
    for number in 0..70_000 {
        let at = number * CLUSTER * 3;
        match number % 1000 {
            0 => writer.write_data(at, &[7; 512]).unwrap(),
            1 => writer.write_zero(at).unwrap(),
            // A hole.
            _ => writer.write_data(at, &[]).unwrap(),
        }
    }
    writer.finish().unwrap();
    let mut command = Command::new("qemu-img");
    let check = qemu_img(command.arg("check").arg(&path));
    assert!(check.contains("No errors"), "{check}");
    let last = 69_000 * 3 * CLUSTER;
    qemu_io(&path, [format!("read -P 7 {last} 512")]);
    qemu_io(&path, ["write -P 8 15G 64k"]);
    let mut command = Command::new("qemu-img");
    qemu_img(command.arg("check").arg(&path));
}

#[test]
fn an_l1_table_of_more_than_one_cluster_is_sound() {
    let folder = Folder::new();
    let base = folder.path("base");
    // An L1 table that fills a cluster is for 4 TiB.
    File::create(&base).unwrap().set_len(5 << 40).unwrap();
    let one = child(&folder, &base, "one", &["write -P 1 4607G 64k"]);
    let two = child(&folder, &one, "two", &["write -P 2 0 64k"]);
    let merged = folder.path("merged");
    assert_eq!(merge(&two, 2, &merged).unwrap(), 4 * CLUSTER);
    qemu_io(&merged, ["read -P 1 4607G 64k", "read -P 2 0 64k"]);
}

#[test]
fn merging_ends_at_its_limit_or_when_told_to_and_leaves_nothing() {
    let folder = Folder::new();
    let base = folder.file("base", Rng::new(1).bytes(8 << 20));
    let one = child(&folder, &base, "one", &["write -P 1 0 4M"]);
    let two = child(&folder, &one, "two", &["write -P 2 4M 4M"]);
    let merged = folder.path("merged");
    let image = open(&two).unwrap();
    let needed = 8 * MIB + CLUSTER;
    let error = merge_layers(&image, 2, &merged, needed - 1, &mut go_on).unwrap_err();
    assert!(matches!(error, ImageError::Limit { .. }), "{error}");
    let mut calls = 0;
    let error = merge_layers(&image, 2, &merged, u64::MAX, &mut |progress| {
        calls += 1;
        assert_eq!(progress.size, 8 * MIB);
        match calls {
            3 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    });
    assert!(matches!(error, Err(ImageError::Cancelled)), "{error:?}");
    assert_eq!(calls, 3);
    assert_eq!(folder.names(), ["base", "one", "two"]);
    merge_layers(&image, 2, &merged, needed, &mut go_on).unwrap();

    fs::write(&merged, "precious").unwrap();
    let error = merge_layers(&image, 2, &merged, u64::MAX, &mut go_on).unwrap_err();
    assert!(matches!(error, ImageError::Exists { .. }), "{error}");
    assert_eq!(fs::read(&merged).unwrap(), b"precious");
}

/// Every table of the first level can be the same one, so that a small file claims
/// terabytes.
#[test]
fn a_file_that_claims_more_than_it_has_is_bounded_by_the_limit() {
    let folder = Folder::new();
    let disk = folder.qcow2("disk", &["cluster_size=64K"], 1 << 40);
    qemu_io(&disk, ["write -P 1 0 64k"]);
    let mut content = fs::read(&disk).unwrap();
    let at = u64::from_be_bytes(content[40..48].try_into().unwrap()) as usize;
    let table: [u8; 8] = content[at..at + 8].try_into().unwrap();
    let entry = (u64::from_be_bytes(table) & !(1 << 63)) as usize;
    let cluster: [u8; 8] = content[entry..entry + 8].try_into().unwrap();
    for number in 0..2048 {
        content[at + number * 8..][..8].copy_from_slice(&table);
    }
    for number in 0..8192 {
        content[entry + number * 8..][..8].copy_from_slice(&cluster);
    }
    fs::write(&disk, content).unwrap();
    let (image, merged) = (open(&disk).unwrap(), folder.path("merged"));
    let error = merge_layers(&image, 1, &merged, 16 * MIB, &mut go_on).unwrap_err();
    assert!(matches!(error, ImageError::Limit { .. }), "{error}");
    assert_eq!(folder.names(), ["disk"]);
}

#[test]
fn damaged_and_corrupt_layers_are_refused_and_leave_nothing() {
    let folder = Folder::new();
    let base = folder.file("base", Rng::new(1).bytes(4 << 20));
    let one = child(&folder, &base, "one", &["write -P 1 0 4M"]);
    let two = child(&folder, &one, "two", &["write -P 2 0 64k"]);
    let merged = folder.path("merged");
    let content = fs::read(&one).unwrap();
    let mut corrupt = content.clone();
    corrupt[79] = 2;
    fs::write(&one, corrupt).unwrap();
    let error = merge(&two, 2, &merged).unwrap_err();
    let is_marked = |error: &ImageError| match error {
        ImageError::Damaged { path, damage } => *path == one && *damage == ImageDamage::Unclean,
        _ => false,
    };
    assert!(is_marked(&error), "{error}");
    // It is not merged, and keeps its mark.
    merge(&two, 1, &merged).unwrap();
    fs::remove_file(&merged).unwrap();
    fs::write(&one, &content[..content.len() - (1 << 20)]).unwrap();
    let error = merge(&two, 2, &merged).unwrap_err();
    assert!(matches!(error, ImageError::Damaged { .. }), "{error}");
    assert_eq!(folder.names(), ["base", "one", "two"]);
}

#[test]
fn the_backing_file_is_named_so_that_all_can_be_moved_together() {
    let folder = Folder::new();
    for name in ["images", "layers"] {
        fs::create_dir(folder.path(name)).unwrap();
    }
    let base = folder.file("images/base", [1; 4096]);
    let top = folder.path("layers/top");
    create_child(&base, &top, OpenOptions::new()).unwrap();
    let options = OpenOptions::new().allow_backing(folder.path(""));
    let image = Image::open(&top, options.clone()).unwrap();
    let merged = folder.path("layers/merged");
    let layer = merge_layers(&image, 1, &merged, u64::MAX, &mut go_on).unwrap();
    assert_eq!((&layer.path, layer.format), (&merged, Format::Qcow2));
    let mut command = Command::new("qemu-img");
    let info = qemu_img(command.arg("info").arg(&merged));
    assert!(info.contains("backing file: ../images/base"), "{info}");
    assert!(info.contains("backing file format: raw"), "{info}");
}

/// One write to a layer.
#[derive(Clone, Debug)]
enum Write {
    Data {
        sector: u64,
        sectors: u64,
        byte: u8,
    },
    Zero {
        sector: u64,
        sectors: u64,
    },
    /// A whole cluster of the layer.
    Compressed {
        cluster: u64,
        byte: u8,
    },
}

/// One layer of a chain.
#[derive(Clone, Debug)]
struct NewLayer {
    cluster_bits: u32,
    compression: &'static str,
    /// The size of the disk in sectors.
    sectors: u64,
    writes: Vec<Write>,
}

/// Number of sectors of the largest disk.
const SECTORS: u64 = 9 * MIB / 512 + 1;

fn write() -> impl Strategy<Value = Write> {
    let range = (0..SECTORS, prop_oneof![1..8_u64, 1..1000_u64]);
    prop_oneof![
        4 => (range.clone(), any::<u8>()).prop_map(|((sector, sectors), byte)| Write::Data {
            sector,
            sectors,
            byte
        }),
        2 => range.prop_map(|(sector, sectors)| Write::Zero { sector, sectors }),
        1 => (any::<u64>(), any::<u8>()).prop_map(|(cluster, byte)| Write::Compressed {
            cluster,
            byte
        }),
    ]
}

fn layer() -> impl Strategy<Value = NewLayer> {
    let cluster_bits = prop::sample::select(vec![9, 12, 16, 16, 16, 17, 21]);
    let sectors = prop_oneof![3 => Just(SECTORS), 1 => 1..SECTORS];
    let compression = prop::sample::select(COMPRESSION_TYPES);
    let writes = prop::collection::vec(write(), 0..8);
    (cluster_bits, compression, sectors, writes).prop_map(
        |(cluster_bits, compression, sectors, writes)| NewLayer {
            cluster_bits,
            compression,
            sectors,
            writes,
        },
    )
}

impl NewLayer {
    /// Creates the layer with QEMU's tools.
    fn create(&self, folder: &Folder, name: &str, below: (&str, &str)) -> PathBuf {
        let path = folder.path(name);
        let mut command = Command::new("qemu-img");
        let cluster = 1_u64 << self.cluster_bits;
        command.args(["create", "-q", "-f", "qcow2", "-b", below.0, "-F", below.1]);
        let compression = self.compression;
        let options = format!("cluster_size={cluster},compression_type={compression}");
        command.arg("-o").arg(options).arg(&path);
        qemu_img(command.arg((self.sectors * 512).to_string()));
        let within = |sector: u64, sectors: u64| {
            let sector = sector % self.sectors;
            (sector * 512, sectors.min(self.sectors - sector) * 512)
        };
        let compressed = self.writes.iter().filter_map(|write| match *write {
            Write::Compressed { cluster: at, byte } => {
                let clusters = self.sectors * 512 / cluster;
                let at = at.checked_rem(clusters)?;
                Some((at * cluster, byte))
            }
            _ => None,
        });
        // QEMU compresses only what is not stored yet: once each, and first.
        let compressed: BTreeMap<_, _> = compressed.collect();
        let compressed = compressed
            .into_iter()
            .map(|(offset, byte)| format!("write -c -P {byte} {offset} {cluster}"));
        let others = self.writes.iter().filter_map(|write| match *write {
            Write::Data {
                sector,
                sectors,
                byte,
            } => {
                let (offset, length) = within(sector, sectors);
                Some(format!("write -P {byte} {offset} {length}"))
            }
            Write::Zero { sector, sectors } => {
                let (offset, length) = within(sector, sectors);
                Some(format!("write -z {offset} {length}"))
            }
            Write::Compressed { .. } => None,
        });
        qemu_io(&path, compressed.chain(others));
        path
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn merged_layers_of_any_chain_read_the_same(
        layers in prop::collection::vec(layer(), 2..=6),
        base_sectors in prop_oneof![Just(SECTORS), 1..SECTORS],
        seed in any::<u64>(),
        first in any::<prop::sample::Index>(),
        count in any::<prop::sample::Index>(),
    ) {
        let folder = Folder::new();
        // Data of a part, so that there are holes.
        let base = folder.file("base", Rng::new(seed).bytes(base_sectors as usize * 128));
        File::options().write(true).open(&base).unwrap().set_len(base_sectors * 512).unwrap();
        let mut paths = vec![base];
        for (number, layer) in layers.iter().enumerate() {
            let below = match number {
                0 => ("base".to_owned(), "raw"),
                _ => (number.to_string(), "qcow2"),
            };
            let name = (number + 1).to_string();
            paths.push(layer.create(&folder, &name, (&below.0, below.1)));
        }
        let top = paths.last().unwrap();
        let original = read_all(&open(top).unwrap(), 1 << 20);

        // From any layer down to any other, also to the raw image.
        let uppermost = 1 + first.index(layers.len());
        let count = 1 + count.index(uppermost + 1);
        let merged = folder.path("merged");
        merge(&paths[uppermost], count, &merged).unwrap();
        compare(&paths[uppermost], &merged);
        let expected = read_all(&open(&paths[uppermost]).unwrap(), 1 << 20);
        prop_assert!(read_all(&open(&merged).unwrap(), 1 << 20) == expected);

        // In place of the layers.
        if let Some(above) = paths.get(uppermost + 1) {
            let mut command = Command::new("qemu-img");
            command.args(["rebase", "-u", "-b", "merged", "-F", "qcow2"]);
            qemu_img(command.arg(above));
        }
        let top = if uppermost == layers.len() { &merged } else { top };
        prop_assert!(read_all(&open(top).unwrap(), 1 << 20) == original);
    }
}
