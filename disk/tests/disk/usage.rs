use std::path::PathBuf;

use crate::sample::Sample;

#[test]
fn usage_counts_a_file_of_two_names_once() {
    let disk = Sample::new().open();
    let usage = disk.usage("src").unwrap();
    // src, deep, er; main.rs and its other name, lib.rs, empty, up.
    let counts = (usage.entries, usage.directories, usage.problems);
    assert_eq!(counts, (8, 3, 0));
    let main = disk.stat("src/main.rs").unwrap();
    let lib = disk.stat("src/deep/er/lib.rs").unwrap();
    assert_eq!(usage.bytes, main.size + lib.size);
    assert!(usage.allocated >= 5 * 4096, "{usage:?}");

    let sparse = disk.usage("data/sparse").unwrap();
    assert_eq!((sparse.entries, sparse.bytes), (1, 6_000_000));
    assert!(sparse.allocated < 100_000);
}

#[test]
fn usage_by_directory_ends_with_the_whole_and_adds_up() {
    let disk = Sample::new().open();
    let usages: Vec<_> = disk
        .usage_by_directory("/", 1)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let paths: Vec<_> = usages.iter().map(|usage| usage.path.clone()).collect();
    let names = [
        "bin",
        "data",
        "etc",
        "lost+found",
        "many",
        "nothing",
        "src",
        "",
    ];
    assert_eq!(paths, names.map(PathBuf::from));
    let whole = usages.last().unwrap().usage;
    assert_eq!(whole, disk.usage("").unwrap());
    let parts: u64 = usages[..7].iter().map(|usage| usage.usage.entries).sum();
    // The root itself, and its four entries that are not directories.
    assert_eq!(whole.entries, parts + 1 + 4);
}
