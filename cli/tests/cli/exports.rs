//! Copies out of a VM stay within their destination, also the second time.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

use crate::{
    destination_cases::{Cases, Expected, IS_SYMLINK, Method, THROUGH_SYMLINK},
    shared_vm::SharedVm,
    vmcell::{Ended, Vmcell},
};

const USER_KEYS: &str = "keys of the user\n";

/// A home directory with keys that a guest would like to replace.
struct UserFiles {
    folder: TempDir,
}

impl UserFiles {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let user = Self { folder };
        fs::create_dir(user.path("ssh")).unwrap();
        fs::create_dir(user.path("work")).unwrap();
        fs::write(user.path("ssh/authorized_keys"), USER_KEYS).unwrap();
        user
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns a path in the working directory.
    fn work(&self, name: &str) -> PathBuf {
        self.path("work").join(name)
    }

    /// Runs a script in a new VM. `SSH` in it is replaced by the directory of
    /// the keys.
    fn run(&self, options: &[&str], script: &str) -> Ended {
        let script = self.script(script);
        let run = Vmcell::run(options.iter().copied(), ["sh", "-ec", &script]);
        run.current_dir(&self.path("work")).finish()
    }

    fn script(&self, script: &str) -> String {
        let script = script.replace("SSH", self.path("ssh").to_str().unwrap());
        format!("cd /workspace; {script}")
    }

    #[track_caller]
    fn assert_untouched(&self) {
        let keys = fs::read_to_string(self.path("ssh/authorized_keys")).unwrap();
        assert_eq!(keys, USER_KEYS);
        assert_eq!(fs::read_dir(self.path("ssh")).unwrap().count(), 1);
    }
}

const LINK: &str = "ln -s SSH y";
const DIRECTORY: &str = "mkdir y; echo evil > y/authorized_keys; echo evil > y/new";

#[test]
fn the_link_of_one_pull_does_not_lead_the_pull_of_the_next_run_outside() {
    let user = UserFiles::new();
    let first = user.run(&["--pull", "y=./outp"], LINK);
    first.assert_failed(1, IS_SYMLINK);
    assert!(first.stderr.contains("--allow-symlink"), "{first:?}");
    assert!(!user.work("outp").is_symlink());

    let asked = user.run(&["--pull", "y=./outp", "--allow-symlink"], LINK);
    asked.assert_printed("");
    assert_eq!(fs::read_link(user.work("outp")).unwrap(), user.path("ssh"));
    let second = user.run(&["--pull", "y=./outp"], DIRECTORY);
    second.assert_failed(1, THROUGH_SYMLINK);
    user.assert_untouched();
}

#[test]
fn the_link_of_one_pull_does_not_lead_the_next_one_of_the_same_run_outside() {
    let user = UserFiles::new();
    let script = "mkdir a b; ln -s SSH a/b; echo evil > b/authorized_keys; mkdir -p b/new";
    let options = ["--pull", "a=./o1", "--pull", "b=./o1/b"];
    let ended = user.run(&options, script);
    ended.assert_failed(1, THROUGH_SYMLINK);
    assert_eq!(fs::read_link(user.work("o1/b")).unwrap(), user.path("ssh"));
    user.assert_untouched();
}

#[test]
fn the_link_of_one_copy_does_not_lead_the_next_one_outside() {
    let user = UserFiles::new();
    let shared = SharedVm::start("exports");
    let change = |script: &str| {
        let script = user.script(script);
        shared.exec([], ["sh", "-ec", &script]).assert_printed("");
    };
    let copy_in = |folder: &Path, from: &str, to: &str, more: &[&str]| {
        let from = format!("{}:{from}", shared.id);
        let words = ["cp", &from, to];
        let words = words.iter().chain(more);
        Vmcell::new(words).current_dir(folder).finish()
    };
    let work = user.path("work");
    let copy = |from: &str, to: &str, more: &[&str]| copy_in(&work, from, to, more);

    // `cp VM:y ./out` twice.
    change(LINK);
    copy("y", "./out", &[]).assert_failed(125, IS_SYMLINK);
    assert!(!user.work("out").is_symlink());
    copy("y", "./out", &["--allow-symlink"]).assert_printed("");
    change(&format!("rm y; {DIRECTORY}"));
    for to in ["./out", "./out/", "./out/new"] {
        copy("y", to, &[]).assert_failed(125, THROUGH_SYMLINK);
        user.assert_untouched();
    }
    copy("y/new", "./out", &[]).assert_failed(125, THROUGH_SYMLINK);
    copy("y", "./out/y.tar", &["--archive"]).assert_failed(125, THROUGH_SYMLINK);
    user.assert_untouched();

    // `cp VM:r ./existing` twice.
    fs::create_dir(user.work("existing")).unwrap();
    change("ln -s SSH r");
    copy("r", "./existing", &[]).assert_failed(125, IS_SYMLINK);
    copy("r", "./existing", &["--allow-symlink"]).assert_printed("");
    change("rm r; mkdir r; echo evil > r/authorized_keys; echo evil > r/new");
    copy("r", "./existing", &[]).assert_failed(125, THROUGH_SYMLINK);
    user.assert_untouched();

    // A link inside a tree is always copied, and not followed later either.
    change("mkdir x; ln -s SSH x/sub; ln -s SSH/authorized_keys x/file");
    copy("x", "./tree", &[]).assert_printed("");
    for to in ["./tree/sub/z", "./tree/sub", "./tree/sub/", "./tree/file"] {
        copy("y", to, &[]).assert_failed(125, THROUGH_SYMLINK);
        copy("y/new", to, &[]).assert_failed(125, THROUGH_SYMLINK);
        user.assert_untouched();
    }
    // The tree itself is updated, and a directory replaces the link.
    change("rm x/sub; mkdir x/sub; echo evil > x/sub/authorized_keys");
    copy("x/.", "./tree", &[]).assert_printed("");
    assert!(user.work("tree/sub/authorized_keys").is_file());
    user.assert_untouched();

    // The user's own links are refused too, with advice. Their targets are not,
    // and neither is a working directory reached through a link.
    fs::create_dir(user.path("data")).unwrap();
    symlink(user.path("data"), user.work("mine")).unwrap();
    let refused = copy("y/new", "./mine", &[]);
    refused.assert_failed(125, "if it is yours, name the path that it leads to");
    let resolved = user.work("mine").canonicalize().unwrap();
    copy("y/new", resolved.to_str().unwrap(), &[]).assert_printed("");
    assert!(user.path("data/new").is_file());
    let behind = copy_in(&user.work("mine"), "y/new", "./again", &[]);
    behind.assert_printed("");
    assert!(user.path("data/again").is_file());
}

#[test]
fn whatever_is_copied_wherever_nothing_outside_of_the_destination_changes() {
    let shared = SharedVm::start("exports-pairs");
    for method in [Method::LikeCp, Method::Archive] {
        let cases = Cases::new(method);
        let (sources, top) = (cases.create_sources(), format!("{}:{method:?}", shared.id));
        let pushed = Vmcell::new(["cp", sources.to_str().unwrap(), &top]).finish();
        pushed.assert_printed("");
        for case in cases.all() {
            let from = format!("{top}/{}", case.incoming.name());
            let mut words = vec!["cp", &from, case.destination.to_str().unwrap()];
            words.extend((method == Method::Archive).then_some("--archive"));
            let ended = Vmcell::new(words).finish();
            let result = match ended.code() {
                0 => Ok(()),
                _ => Err(ended.stderr),
            };
            cases.check(&case, result);
        }
    }
}

#[test]
fn whatever_is_pulled_wherever_nothing_outside_of_host_changes() {
    let cases = Cases::new(Method::Exact);
    let sources = cases.create_sources();
    let all = cases.all();
    let pulls = all.iter().map(|case| {
        let to = case.destination.to_str().unwrap();
        format!("{}={to}", case.incoming.name())
    });
    let pulls: Vec<_> = pulls.collect();
    let mut options = vec!["--push", sources.to_str().unwrap()];
    options.extend(pulls.iter().flat_map(|pull| ["--pull", pull]));
    let ended = Vmcell::run(options, ["true"]).finish();
    assert_eq!(ended.code(), 1, "{ended:?}");
    // Each failure is reported on one line, in the order of the options.
    let mut lines = ended.stderr.lines();
    for case in &all {
        let result = match cases.expected(case) {
            Expected::Rejected(_) => Err(lines.next().unwrap_or_default().to_owned()),
            _ => Ok(()),
        };
        cases.check(case, result);
    }
    assert_eq!(lines.next(), None);
}
