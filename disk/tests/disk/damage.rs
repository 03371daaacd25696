use std::{
    fs, io,
    os::unix::fs::FileExt as _,
    time::{Duration, Instant},
};

use vmcell_disk::{
    ArchiveFormat, Comparison, DiffSide, Disk, DiskLimits, DiskProblem, Entry, EntryKind, Find,
    Grep, TreeLimits, WalkOptions, ext4::RunPlace,
};

use crate::sample::{Sample, open, open_raw};

/// A deterministic random number generator (xorshift).
struct Rng(u64);

impl Rng {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// Uses all operations on a disk.
fn use_everything(disk: &Disk, base: &Disk, sample: &Sample) {
    let _ = (disk.info(), disk.layers(), disk.partitions());
    let walk = disk.walk("/", WalkOptions::new().with_sha256());
    for entry in walk.into_iter().flatten() {
        match entry {
            Ok(Entry { path, .. }) => {
                let _ = (disk.details(&path), disk.xattrs(&path), disk.stat(&path));
            }
            Err(problem) => {
                let text = problem.to_string();
                assert!(!text.chars().any(char::is_control), "{text:?}");
            }
        }
    }
    let _ = disk.usage("/");
    let _ = disk.find("/", Find::new().name("*7")).map(Iterator::count);
    let _ = disk.grep("/", &Grep::new("hello")).map(Iterator::count);
    let mut limits = TreeLimits::default();
    limits.bytes = 32 << 20;
    let to = sample.path("damaged");
    let _ = disk.export("/", &to).limits(limits).run();
    let _ = fs::remove_dir_all(&to);
    let export = disk.export_archive_to("/", io::sink(), ArchiveFormat::Tar);
    let _ = export.limits(limits).run();
    let (old, new) = (DiffSide::disk(base, "/"), DiffSide::disk(disk, "/"));
    let _ = Comparison::new(old, new).run();
}

/// Returns the peak memory of this process in KiB.
fn peak_memory_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let mut lines = status.lines();
    let line = lines.find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Flips bits in the metadata: in the first MiB of the image, with the
/// superblock, descriptors, bitmaps and inode tables, and in the blocks of
/// directories and block maps after it.
#[test]
fn a_damaged_disk_is_read_as_far_as_it_goes_within_time_and_memory() {
    for options in [
        ["-t", "ext4", "-b", "1024", "-O", "^metadata_csum"],
        ["-t", "ext4", "-b", "4096", "-O", "metadata_csum"],
        ["-t", "ext2", "-b", "1024", "-O", "^dir_index"],
    ] {
        let sample = Sample::with(&options);
        let base = sample.open();
        let whole = fs::read(sample.image()).unwrap();
        let path = sample.path("flipped.ext4");
        let mut rng = Rng(0x5eed);
        let mut limits = DiskLimits::default();
        limits.time = Duration::from_secs(20);
        for _ in 0..8 {
            fs::write(&path, &whole).unwrap();
            let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
            for _ in 0..1 + rng.below(40) {
                let at = 1024 + rng.below(2 << 20);
                let bit = 1 << rng.below(8);
                let byte = whole[usize::try_from(at).unwrap()] ^ bit;
                file.write_all_at(&[byte], at).unwrap();
            }
            drop(file);
            let start = Instant::now();
            if let Ok(disk) = Disk::options().limits(limits).open(&path) {
                use_everything(&disk, &base, &sample);
            }
            // Ten operations of at most 20 s each, and a margin.
            let time = start.elapsed();
            assert!(time < Duration::from_secs(240), "{time:?}");
        }
    }
    assert!(peak_memory_kib() < 256 << 10, "{} KiB", peak_memory_kib());
}

/// Exports everything and checks that each file is complete, or missing and
/// reported. Returns the number of problems.
fn missing_from_export(disk: &Disk, whole: &Disk, sample: &Sample) -> usize {
    let to = sample.path("out");
    let export = disk.export("/", &to).exclude("/lost+found/");
    let exported = export.run().unwrap();
    let problems = &exported.problems;
    assert_eq!(problems.len() as u64, exported.problem_count);
    for entry in whole.find("/", Find::new().kind(EntryKind::File)).unwrap() {
        let path = entry.unwrap().path;
        let is_about = |problem: &DiskProblem| path.starts_with(&problem.path);
        match fs::read(to.join(&path)) {
            Ok(bytes) => assert!(bytes == whole.read(&path).unwrap(), "{path:?}"),
            Err(_) => assert!(problems.iter().any(is_about), "{path:?}"),
        }
    }
    fs::remove_dir_all(to).unwrap();
    problems.len()
}

/// Returns the offsets in the image at which parts of files end, sorted.
fn ends_of_files(disk: &Disk) -> Vec<u64> {
    let mut ends = Vec::new();
    for entry in disk.find("/", Find::new().kind(EntryKind::File)).unwrap() {
        let number = u32::try_from(entry.unwrap().inode).unwrap();
        let inode = disk.file_system().inode(number).unwrap();
        for run in disk.file_system().runs(&inode).map(Result::unwrap) {
            if let RunPlace::Data(start) = run.place {
                ends.push(start + run.length);
            }
        }
    }
    ends.sort_unstable();
    ends
}

#[test]
fn an_image_that_was_cut_off_loses_only_what_was_cut_off() {
    let sample = Sample::new();
    let whole = sample.path("whole.ext4");
    fs::copy(sample.image(), &whole).unwrap();
    let whole = open(&whole);
    let ends = ends_of_files(&whole);
    let file = fs::OpenOptions::new()
        .write(true)
        .open(sample.image())
        .unwrap();
    for from_end in [1, 2, 30] {
        let end = ends[ends.len() - from_end] - 1;
        file.set_len(end).unwrap();
        let disk = open_raw(&sample.image());
        let lost = missing_from_export(&disk, &whole, &sample);
        assert!(lost > 0, "nothing was lost behind {end} bytes");
    }
}

#[test]
fn a_file_whose_map_leads_nowhere_is_left_out_and_its_neighbours_are_not() {
    let sample = Sample::new();
    // The start block of the first extent (after the header and the extent's
    // first block and length), and the header.
    let commands = "sif /data/large block[5] 0x7fffffff\nsif /src/main.rs block[0] 0\n";
    let disk = open_raw(&sample.changed("lost.ext4", commands));
    assert_eq!(disk.read("data/large").unwrap_err().code(), "damaged");
    assert_eq!(disk.read("src/same.rs").unwrap_err().code(), "damaged");
    // Both files have two hard links.
    let whole = sample.open();
    assert_eq!(missing_from_export(&disk, &whole, &sample), 4);
    let found = disk.grep("/", &Grep::new("hello|hunter2")).unwrap();
    let (found, problems): (Vec<_>, Vec<_>) = found.partition(Result::is_ok);
    assert_eq!((found.len(), problems.len()), (1, 4), "{problems:?}");
    let walk = WalkOptions::new().with_sha256().glob("src/*.rs");
    let entries = disk.walk("/", walk).unwrap();
    assert_eq!(entries.filter(Result::is_err).count(), 2);
    let export = disk.export("/", sample.path("part"));
    let exported = export.exclude("large*").exclude("/data/").run().unwrap();
    assert_eq!(exported.problem_count, 2);
    let (old, new) = (DiffSide::folder(sample.tree()), DiffSide::disk(&disk, "/"));
    let comparison = Comparison::new(old, new).exclude("/lost+found/");
    let diff = comparison.run().unwrap();
    assert!(diff.is_empty(), "{:?}", diff.changes());
    assert_eq!(diff.problem_count(), 4);
    let (old, new) = (DiffSide::folder(sample.tree()), DiffSide::disk(&disk, "/"));
    let comparison = Comparison::new(old, new)
        .exclude("large*")
        .exclude("/data/");
    assert_eq!(comparison.run().unwrap().problem_count(), 2);
}
