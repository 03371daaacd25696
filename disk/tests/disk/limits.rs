use std::{fs, os::unix::fs::symlink, path::Path, time::Duration};

use vmcell_disk::{
    Comparison, DiffSide, Disk, DiskError, DiskLimit, DiskLimits, Grep, ReadOptions, WalkOptions,
    diff::PatchDetail,
};

use crate::sample::{Sample, run, tool};

fn limited(sample: &Sample, change: impl FnOnce(&mut DiskLimits)) -> Disk {
    let mut limits = DiskLimits::default();
    change(&mut limits);
    Disk::options().limits(limits).open(sample.image()).unwrap()
}

fn limit_of<T>(result: Result<T, DiskError>) -> DiskLimit {
    match result {
        Err(DiskError::Limit { what, .. }) => what,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("no limit was noticed"),
    }
}

/// Returns the number of entries and the limit that ended the walk as its last
/// item.
fn end_of_walk(disk: &Disk, walk: WalkOptions) -> (usize, DiskLimit) {
    let mut entries: Vec<_> = disk.walk("/", walk).unwrap().collect();
    let last = entries.pop().unwrap();
    let limit = limit_of(last.map_err(|problem| problem.error));
    assert!(entries.iter().all(Result::is_ok));
    (entries.len(), limit)
}

#[test]
fn every_operation_ends_at_its_limits_and_says_so() {
    let sample = Sample::new();
    let few = limited(&sample, |limits| limits.entries = 100);
    let (count, limit) = end_of_walk(&few, WalkOptions::new().unsorted());
    assert_eq!(limit, DiskLimit::Entries);
    assert!((50..=100).contains(&count), "{count}");
    assert_eq!(limit_of(few.usage("/")), DiskLimit::Entries);
    let export = few.export("/", sample.path("few"));
    assert_eq!(limit_of(export.run()), DiskLimit::Entries);
    let (old, new) = (DiffSide::disk(&few, "/"), DiffSide::folder(sample.tree()));
    assert_eq!(
        limit_of(Comparison::new(old, new).run()),
        DiskLimit::Entries
    );

    let small = limited(&sample, |limits| limits.memory = 10_000);
    assert_eq!(end_of_walk(&small, WalkOptions::new()).1, DiskLimit::Memory);
    let mut unsorted = small.walk("/", WalkOptions::new().unsorted()).unwrap();
    assert!(unsorted.all(|entry| entry.is_ok()));
    assert_eq!(limit_of(small.list("many")), DiskLimit::Memory);

    let quick = limited(&sample, |limits| limits.time = Duration::ZERO);
    assert_eq!(limit_of(quick.read("etc/passwd")), DiskLimit::Time);
    assert_eq!(limit_of(quick.sha256("data/large")), DiskLimit::Time);
    let export = quick.export("etc", sample.path("quick"));
    assert_eq!(limit_of(export.run()), DiskLimit::Time);
    assert!(!sample.path("quick").exists());
}

#[test]
fn what_is_too_deep_or_too_long_hides_nothing_else() {
    let sample = Sample::new();
    let whole = sample.open().walk("/", WalkOptions::new()).unwrap().count();
    let flat = limited(&sample, |limits| limits.depth = 2);
    let (entries, problems): (Vec<_>, Vec<_>) = flat
        .walk("/", WalkOptions::new())
        .unwrap()
        .partition(Result::is_ok);
    assert_eq!(problems.len(), 1);
    // Without the contents of `deep`.
    assert_eq!(entries.len(), whole - 3);

    // A file beyond the limit is left out, the others are not.
    let short = limited(&sample, |limits| limits.bytes = 3_500_000);
    let (entries, problems): (Vec<_>, Vec<_>) = short
        .walk("/", WalkOptions::new().with_sha256().exclude("large-too"))
        .unwrap()
        .partition(Result::is_ok);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(entries.len(), whole - 2);
    let found = short.grep("/many", &Grep::new("^299$")).unwrap();
    assert_eq!(found.count(), 1);
}

#[test]
fn a_file_that_claims_more_than_memory_holds_is_not_read_without_a_limit() {
    let sample = Sample::new();
    let image = sample.changed("vast.ext4", "sif /data/sparse size 0x80000000000");
    let disk = Disk::options().ignore_checksums().open(image).unwrap();
    assert_eq!(disk.stat("data/sparse").unwrap().size, 1 << 43);
    let whole = disk.read_with("data/sparse", ReadOptions::new());
    assert_eq!(limit_of(whole), DiskLimit::Read);
    let part = ReadOptions::new().range(1_500_000, 13);
    assert_eq!(
        disk.read_with("data/sparse", part).unwrap(),
        b"in the middle"
    );
}

/// A diff holds lines, names and symlink targets in memory.
#[test]
fn a_comparison_keeps_no_more_than_it_may() {
    let sample = Sample::new();
    let (texts, links) = (sample.path("texts"), sample.path("links"));
    let empty = sample.path("empty");
    for folder in [&texts, &links, &empty] {
        fs::create_dir(folder).unwrap();
    }
    fs::write(texts.join("first"), "x\n".repeat(50_000)).unwrap();
    for number in 0..100 {
        let name = format!("{number:03}");
        fs::hard_link(texts.join("first"), texts.join(&name)).unwrap();
        symlink("y".repeat(3000), links.join(name)).unwrap();
    }
    let compare = |tree: &Path| {
        let image = tree.with_extension("ext4");
        let mut command = tool("mke2fs");
        command.args(["-q", "-F", "-t", "ext4", "-b", "4096", "-d"]);
        run(command.arg(tree).arg(&image).arg("8M"));
        let mut limits = DiskLimits::default();
        limits.memory = 1_000_000;
        let disk = Disk::options().limits(limits).open(&image).unwrap();
        let (old, new) = (DiffSide::folder(&empty), DiffSide::disk(&disk, "/"));
        Comparison::new(old, new).exclude("/lost+found/").run()
    };

    // Without memory for its lines, a file is still listed.
    let diff = compare(&texts).unwrap();
    assert_eq!(diff.changes().len(), 101);
    let shown = |how| {
        let changes = diff.changes().iter();
        changes.filter(|change| change.file.detail() == how).count()
    };
    assert_eq!(
        (shown(PatchDetail::Full), shown(PatchDetail::NameOnly)),
        (3, 98)
    );
    let patches = diff
        .changes()
        .iter()
        .map(|change| change.file.patch().len());
    assert!(patches.sum::<usize>() < 600_000);

    // A symlink's target is held twice: in the patch and in the change.
    assert_eq!(compare(&links).unwrap().changes().len(), 100);
    for number in 100..200 {
        symlink("y".repeat(3000), links.join(number.to_string())).unwrap();
    }
    assert_eq!(limit_of(compare(&links)), DiskLimit::Memory);
}
