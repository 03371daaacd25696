use vmcell_disk::{Comparison, DiffSide, DiskError, WalkOptions};

use crate::sample::{Sample, open};

/// Hard links make directories contain themselves.
#[test]
fn directories_within_themselves_end_and_hide_nothing() {
    let sample = Sample::new();
    let commands = "link /src /src/deep/er/again\nlink /src/deep /src/deep/deep\nlink / /root\n";
    let disk = open(&sample.changed("loop.ext4", commands));
    let whole = sample.open().walk("/", WalkOptions::new()).unwrap().count();
    for walk in [WalkOptions::new(), WalkOptions::new().unsorted()] {
        let (entries, problems): (Vec<_>, Vec<_>) =
            disk.walk("/", walk).unwrap().partition(Result::is_ok);
        assert_eq!(entries.len(), whole + 3);
        assert_eq!(problems.len(), 3, "{problems:?}");
        for problem in problems {
            let error = problem.unwrap_err().error;
            assert!(matches!(error, DiskError::Damaged { .. }), "{error:?}");
        }
    }
    assert_eq!(disk.usage("/").unwrap().problems, 3);
    let to = sample.path("out");
    let exported = disk.export("/src", &to).run().unwrap();
    assert_eq!(exported.problem_count, 2, "{:?}", exported.problems);
    assert!(to.join("deep/er/lib.rs").is_file());
    let (old, new) = (DiffSide::disk(&disk, "/"), DiffSide::disk(&disk, "/"));
    let diff = Comparison::new(old, new).run().unwrap();
    assert!(diff.is_empty());
    assert_eq!(diff.problem_count(), 3);
}
