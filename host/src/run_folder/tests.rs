use std::{
    fs,
    io::{BufRead as _, BufReader},
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, symlink},
    process::{Child, Command, Stdio},
    thread,
};

use super::*;

/// Returns a private base, and the folder that it is in.
fn base() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let base = folder.path().join("b");
    (folder, base)
}

fn names(base: &Path) -> Vec<String> {
    let entries = fs::read_dir(base).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn a_folder_is_private_says_whose_it_is_and_goes_with_its_owner() {
    let (_folder, base) = base();
    let run = RunFolder::create(&base, "one").unwrap();
    assert_eq!(run.path(), base.join("one"));
    assert_eq!((mode(&base), mode(run.path())), (0o700, 0o700));
    let owner = fs::read_to_string(run.path().join("lock")).unwrap();
    assert!(
        owner.starts_with(&format!("pid {}, started ", std::process::id())),
        "{owner}"
    );
    fs::create_dir(run.path().join("more")).unwrap();
    fs::write(run.path().join("more/file"), "x").unwrap();
    drop(run);
    assert!(names(&base).is_empty());
}

#[test]
fn an_id_is_taken_while_its_owner_lives() {
    let (_folder, base) = base();
    let run = RunFolder::create(&base, "one").unwrap();
    let error = RunFolder::create(&base, "one").unwrap_err();
    assert_eq!(error.code(), "id-taken");
    let other = RunFolder::create(&base, "two").unwrap();
    drop(run);
    RunFolder::create(&base, "one").unwrap();
    drop(other);
}

#[test]
fn an_id_is_one_name_and_leaves_room_for_a_socket() {
    let (_folder, base) = base();
    for id in ["", "..", "a/b", "/", "/etc"] {
        let error = RunFolder::create(&base, id).unwrap_err();
        assert_eq!(error.code(), "invalid", "{id:?}: {error}");
    }
    let error = RunFolder::create(&base, &"x".repeat(90)).unwrap_err();
    assert!(error.to_string().contains("too long"), "{error}");
}

#[test]
fn a_base_that_is_not_ours_alone_is_not_used() {
    let (folder, base) = base();
    let refused = |expected: &str| {
        let error = RunFolder::create(&base, "one").unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    };
    fs::write(&base, "").unwrap();
    refused("is not a folder");
    fs::remove_file(&base).unwrap();

    let elsewhere = folder.path().join("elsewhere");
    fs::DirBuilder::new()
        .mode(0o700)
        .create(&elsewhere)
        .unwrap();
    symlink(&elsewhere, &base).unwrap();
    refused("is not a folder");
    fs::remove_file(&base).unwrap();

    fs::create_dir(&base).unwrap();
    fs::set_permissions(&base, fs::Permissions::from_mode(0o750)).unwrap();
    refused("chmod 700");

    // Only root can change the owner.
    let nobody = Some(rustix::fs::Uid::from_raw(65534));
    if rustix::fs::chown(&base, nobody, None).is_ok() {
        refused("belongs to another user");
    }
}

#[test]
fn what_is_dead_or_was_never_finished_is_swept_and_the_living_are_not() {
    let (_folder, base) = base();
    let living = RunFolder::create(&base, "living").unwrap();
    fs::create_dir(base.join("unfinished")).unwrap();
    fs::create_dir(base.join("dead")).unwrap();
    fs::write(base.join("dead/lock"), "").unwrap();
    fs::write(base.join("dead/socket"), "").unwrap();
    // Nothing that leads out of the base is followed.
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("kept"), "").unwrap();
    symlink(outside.path(), base.join("dead/link")).unwrap();
    fs::write(base.join("stray"), "").unwrap();
    sweep(&base);
    assert_eq!(names(&base), ["living", "stray"]);
    assert!(outside.path().join("kept").exists());
    drop(living);
    assert_eq!(names(&base), ["stray"]);
}

#[test]
fn many_that_make_sweep_and_drop_at_once_never_take_from_each_other() {
    let (_folder, base) = base();
    thread::scope(|scope| {
        for worker in 0..8 {
            let base = &base;
            scope.spawn(move || {
                for _ in 0..50 {
                    let run = RunFolder::create(base, &format!("vm{worker}")).unwrap();
                    fs::write(run.path().join("mine"), "x").unwrap();
                    sweep(base);
                    assert!(run.path().join("mine").exists());
                }
            });
        }
    });
    assert!(names(&base).is_empty());
}

/// Runs one test of this file in a separate process.
fn program(test: &str, base: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env("VMCELL_TEST_BASE", base)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The child process of the test below: it creates a folder and waits.
#[test]
fn a_program_that_makes_a_folder_and_waits() {
    let Some(base) = std::env::var_os("VMCELL_TEST_BASE") else {
        return;
    };
    let run = RunFolder::create(Path::new(&base), "other").unwrap();
    fs::write(run.path().join("socket"), "").unwrap();
    println!("\nmade");
    let _ = std::io::stdin().read_line(&mut String::new());
}

#[test]
fn what_a_killed_program_left_is_removed_by_the_next_one() {
    let (_folder, base) = base();
    let test = "run_folder::tests::a_program_that_makes_a_folder_and_waits";
    let mut other = program(test, &base);
    let said = BufReader::new(other.stdout.take().unwrap());
    let made = said.lines().any(|line| line.unwrap() == "made");
    assert!(made);

    let ours = RunFolder::create(&base, "ours").unwrap();
    assert_eq!(names(&base), ["other", "ours"], "it lives");
    other.kill().unwrap();
    other.wait().unwrap();
    assert!(base.join("other/socket").exists());
    drop(ours);
    RunFolder::create(&base, "other").unwrap();
    assert!(names(&base).is_empty());
}

#[test]
fn cgroups_go_with_their_folder() {
    let Some(parent) = writable_cgroup() else {
        return;
    };
    let (_folder, base) = base();
    let cgroup = parent.join(format!("vmcell-test-{}", std::process::id()));
    let run = RunFolder::create(&base, "one").unwrap();
    run.remove_cgroup_on_drop(&cgroup).unwrap();
    fs::create_dir(&cgroup).unwrap();
    fs::create_dir(cgroup.join("beneath")).unwrap();
    let mut sleeper = Command::new("sleep").arg("60").spawn().unwrap();
    fs::write(
        cgroup.join("beneath/cgroup.procs"),
        sleeper.id().to_string(),
    )
    .unwrap();
    drop(run);
    assert!(!cgroup.exists());
    assert!(!sleeper.wait().unwrap().success());
}

#[test]
fn a_process_that_comes_while_a_cgroup_is_removed_is_killed_too() {
    let Some(parent) = writable_cgroup() else {
        return;
    };
    let (_folder, base) = base();
    let cgroup = parent.join(format!("vmcell-test-late-{}", std::process::id()));
    for _ in 0..20 {
        let run = RunFolder::create(&base, "one").unwrap();
        run.remove_cgroup_on_drop(&cgroup).unwrap();
        fs::create_dir(&cgroup).unwrap();
        let procs = cgroup.join("cgroup.procs");
        // Joins as fast as it can, until the cgroup is gone.
        let join = "while sh -c 'echo $$ > \"$0\" && kill -STOP $$' \"$0\"; do :; done 2>/dev/null";
        let mut joiners: Vec<_> = (0..4)
            .map(|_| {
                let mut shell = Command::new("sh");
                shell.args(["-c", join]).arg(&procs).spawn().unwrap()
            })
            .collect();
        drop(run);
        let is_gone = !cgroup.exists();
        // Leaves no process behind if the test fails.
        let _ = fs::write(cgroup.join("cgroup.kill"), "1");
        for joiner in &mut joiners {
            joiner.wait().unwrap();
        }
        assert!(is_gone);
    }
    assert!(names(&base).is_empty());
}

#[test]
fn a_cgroup_that_cannot_be_removed_is_removed_by_the_next_sweep() {
    let (_folder, base) = base();
    // Looks like a cgroup whose processes the kernel cannot kill yet.
    let cgroup = tempfile::tempdir().unwrap();
    fs::write(cgroup.path().join("cgroup.events"), "populated 1\n").unwrap();
    let run = RunFolder::create(&base, "one").unwrap();
    run.remove_cgroup_on_drop(cgroup.path()).unwrap();
    drop(run);
    let left = names(&base);
    assert_eq!(left.len(), 1);
    // The id can be used again. Its sweep fails to remove the cgroup.
    drop(RunFolder::create(&base, "one").unwrap());
    assert_eq!(names(&base), left);
    cgroup.close().unwrap();
    sweep(&base);
    assert!(names(&base).is_empty());
}

/// Returns where this user may create cgroups. If nowhere, prints that the test
/// is skipped and returns `None`.
fn writable_cgroup() -> Option<PathBuf> {
    let found = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"]
        .map(PathBuf::from)
        .into_iter()
        .find(|root| {
            let tried = root.join(format!("vmcell-try-{}", std::process::id()));
            root.join("cgroup.procs").exists()
                && fs::create_dir(&tried).is_ok()
                && fs::remove_dir(&tried).is_ok()
        });
    if found.is_none() {
        eprintln!("skipped: no cgroup2 that this user may write");
    }
    found
}
