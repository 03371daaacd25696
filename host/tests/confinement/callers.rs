//! The attacks, by each kind of caller: root, root without rights, an ordinary user, and one
//! who may not have namespaces.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::Path,
    process::Command,
};

use rustix::process::geteuid;
use seccompiler::{SeccompAction, SeccompFilter, TargetArch, apply_filter_all_threads};
use vmcell::{
    Confinement,
    confinement::{Layer, LayerStatus},
};

use crate::stand_in::{Outcome, attack};

/// Environment variable: makes the system refuse namespaces to this program, as container
/// managers do.
const REFUSE_NAMESPACES: &str = "VMCELL_TEST_REFUSE_NAMESPACES";

/// A user id without any files or rights.
const NOBODY: u32 = 65_532;

const TEST: &str = "callers::each_attack_is_refused";

fn is_active(outcome: &Outcome, layer: Layer) -> bool {
    let find = |status: &&LayerStatus| status.layer == layer;
    outcome.layers.iter().find(find).unwrap().is_active
}

#[tokio::test]
async fn each_attack_is_refused() {
    let has_namespaces = std::env::var_os(REFUSE_NAMESPACES).is_none();
    if !has_namespaces {
        refuse_namespaces();
    }
    for confinement in [Confinement::Required, Confinement::BestEffort] {
        let outcome = attack(confinement).await;
        assert_eq!(
            is_active(&outcome, Layer::Namespaces),
            has_namespaces,
            "{outcome:?}"
        );
        for layer in [
            Layer::Landlock,
            Layer::Seccomp,
            Layer::Capabilities,
            Layer::Limits,
        ] {
            assert!(is_active(&outcome, layer), "{outcome:?}");
        }
        // Who shares a user with other programs is not counted alone.
        let expected: &[&str] = match has_namespaces || is_active(&outcome, Layer::Cgroup) {
            true => &[],
            false => &["make 1,000 threads"],
        };
        assert_eq!(outcome.successes(), expected, "{outcome:?}");
    }
}

/// What is refused above is not refused for other reasons.
#[tokio::test]
async fn each_attack_would_succeed() {
    let outcome = attack(Confinement::Off).await;
    // Those that are refused to any program of an ordinary user.
    let privileged = ["mount", "debug a process", "read the memory of a process"];
    for name in crate::attacker::names() {
        if name == "execute a program among the libraries" {
            // The program before it was executed.
            break;
        }
        if geteuid().is_root() || !privileged.contains(&name) {
            assert!(!outcome.is_refused(name), "{name}: {outcome:?}");
        }
    }
}

#[test]
fn also_if_the_caller_has_no_namespaces() {
    run_again(Command::new(std::env::current_exe().unwrap()).env(REFUSE_NAMESPACES, "1"));
}

#[test]
fn also_if_the_caller_is_an_ordinary_user() {
    as_ordinary_user(|command| command);
}

#[test]
fn also_if_the_caller_is_an_ordinary_user_without_namespaces() {
    as_ordinary_user(|command| command.env(REFUSE_NAMESPACES, "1"));
}

/// Runs the attacks again as a user who has nothing.
fn as_ordinary_user(alter: impl FnOnce(&mut Command) -> &mut Command) {
    if !geteuid().is_root() {
        eprintln!("skipped: only root can become somebody else");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("tests");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    for path in [folder.path(), &program] {
        give_to_nobody(path);
    }
    let mut command = Command::new(&program);
    command
        .env("HOME", folder.path())
        .env("TMPDIR", folder.path())
        .env_remove("XDG_RUNTIME_DIR")
        .current_dir(folder.path())
        .uid(NOBODY)
        .gid(NOBODY);
    run_again(alter(&mut command));
}

fn give_to_nobody(path: &Path) {
    std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o700)).unwrap();
}

fn run_again(command: &mut Command) {
    let output = command.args([TEST, "--exact"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains("test callers::each_attack_is_refused ... ok"),
        "{said}"
    );
}

/// Lets unshare(2) fail from now on.
fn refuse_namespaces() {
    let rules = BTreeMap::from([(nix::libc::SYS_unshare, Vec::new())]);
    let refuse = SeccompAction::Errno(nix::libc::EPERM.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, TargetArch::x86_64);
    let program: seccompiler::BpfProgram = filter.unwrap().try_into().unwrap();
    apply_filter_all_threads(&program).unwrap();
}
