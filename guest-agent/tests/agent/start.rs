//! All settings of a process before it starts.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

use crate::client::{Reply, RunningAgent, Spec, code};
use vmcell_wire::{Channel, ExitCause, FailureKind, Rlimit, Selector, Stage};

/// A new directory that every user may access.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("vmcell-agent-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().into()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns whether the agent can switch users.
fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        println!("skipped: only root can become another user");
    }
    root
}

#[test]
fn a_working_directory_is_made_only_if_asked_for() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let scratch = Scratch::new("cwd");
    let path = scratch.path("a/b//c/");
    let missing = Spec::new(&["pwd"]).with(|spec| spec.cwd.clone_from(&path));
    let not_found = (FailureKind::NotFound, Stage::WorkingDirectory);
    assert_eq!(host.start_refused(&missing), not_found);
    for _ in 0..2 {
        let made = Spec::shell("pwd; umask").with(|spec| {
            spec.cwd.clone_from(&path);
            spec.start.make_cwd = true;
            spec.start.umask = Some(0o027);
        });
        let (exit, text) = host.run(&made);
        assert_eq!(code(&exit), 0);
        assert_eq!(text, format!("{}\n0027\n", scratch.path("a/b/c")));
    }
    let mode = fs::metadata(scratch.path("a/b")).unwrap().permissions();
    assert_eq!(mode.mode() & 0o777, 0o750);
}

#[test]
fn a_working_directory_that_cannot_be_is_refused() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let scratch = Scratch::new("file");
    fs::write(scratch.path("file"), "").unwrap();
    let in_directory = |path: &str| {
        Spec::new(&["pwd"]).with(|spec| {
            spec.cwd = path.into();
            spec.start.make_cwd = true;
        })
    };
    let not_found = (FailureKind::NotFound, Stage::WorkingDirectory);
    let invalid = (FailureKind::Invalid, Stage::WorkingDirectory);
    for (path, expected) in [
        (scratch.path("file"), not_found),
        (scratch.path("file/below"), not_found),
        ("/proc/nothing/here".into(), not_found),
        ("a\0b".into(), invalid),
        ("/x".repeat(3000), invalid),
        (scratch.path(&"x".repeat(300)), invalid),
    ] {
        assert_eq!(host.start_refused(&in_directory(&path)), expected, "{path}");
    }
}

#[test]
fn the_mask_the_niceness_and_the_limits_are_set() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let spec = Spec::shell("umask; nice; ulimit -n; ulimit -Hn; ulimit -c").with(|spec| {
        spec.start.umask = Some(0o077);
        spec.start.nice = 7;
        spec.rlimits.push(Rlimit {
            resource: 7,
            soft: 99,
            hard: 100,
        });
        spec.rlimits.push(Rlimit {
            resource: 4,
            soft: 0,
            hard: 0,
        });
    });
    let (exit, text) = host.run(&spec);
    assert_eq!(code(&exit), 0);
    assert_eq!(text, "0077\n7\n99\n100\n0\n");
    // The next process has the defaults again.
    let (_, text) = host.run(&Spec::shell("nice; ulimit -Hn"));
    assert!(!text.starts_with("7\n"), "{text}");
    assert!(!text.ends_with("\n100\n"), "{text}");
}

#[test]
fn limits_that_make_no_sense_are_refused() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let invalid = (FailureKind::Invalid, Stage::Limits);
    for nice in [-21, 20, i8::MIN, i8::MAX] {
        let spec = Spec::new(&["true"]).with(|spec| spec.start.nice = nice);
        assert_eq!(host.start_refused(&spec), invalid, "{nice}");
    }
    for (resource, soft, hard) in [(16, 0, 0), (255, 0, 0), (7, 2, 1)] {
        let spec = Spec::new(&["true"]).with(|spec| {
            spec.rlimits.push(Rlimit {
                resource,
                soft,
                hard,
            });
        });
        assert_eq!(host.start_refused(&spec), invalid, "{resource}");
    }
    let many = Spec::new(&["true"]).with(|spec| {
        for _ in 0..17 {
            spec.rlimits.push(Rlimit {
                resource: 4,
                soft: 0,
                hard: 0,
            });
        }
    });
    assert_eq!(host.start_refused(&many), invalid);
}

#[test]
fn limits_of_a_cgroup_need_cgroups() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let unsupported = (FailureKind::Unsupported, Stage::Limits);
    for change in [
        |spec: &mut Spec| spec.start.limits.memory = 1 << 20,
        |spec: &mut Spec| spec.start.limits.pids = 10,
        |spec: &mut Spec| spec.start.limits.cpu_milli = 500,
    ] {
        let spec = Spec::new(&["true"]).with(change);
        assert_eq!(host.start_refused(&spec), unsupported);
    }
}

#[test]
fn a_number_is_a_user() {
    if !is_root() {
        return;
    }
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let script = "id -u; id -g; grep -E '^Groups:' /proc/self/status; echo $HOME $USER";
    let spec = Spec::shell(script).with(|spec| {
        spec.user = "54321:12345".into();
        spec.start.default_env = true;
    });
    let (exit, text) = host.run(&spec);
    assert_eq!(code(&exit), 0);
    assert_eq!(text, "54321\n12345\nGroups:\t \n/ 54321\n");
    let spec = Spec::new(&["sleep", "1000"])
        .background()
        .with(|spec| spec.user = "54321".into());
    host.spawn(&spec);
    assert_eq!(host.list(0).0[0].uid, 54321);
}

#[test]
fn a_name_is_a_user_who_makes_the_directory_itself() {
    if !is_root() {
        return;
    }
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let scratch = Scratch::new("user");
    let made = Spec::shell("id -un; stat -c %U .; echo $USER").with(|spec| {
        spec.user = "daemon".into();
        spec.cwd = scratch.path("home/daemon");
        spec.start.make_cwd = true;
        spec.start.default_env = true;
    });
    let (exit, text) = host.run(&made);
    assert_eq!(code(&exit), 0);
    assert_eq!(text, "daemon\ndaemon\ndaemon\n");
    // It has only the rights of the user.
    let denied = Spec::new(&["true"]).with(|spec| {
        spec.user = "daemon".into();
        spec.cwd = "/root/made-by-daemon/x".into();
        spec.start.make_cwd = true;
    });
    let expected = (FailureKind::Denied, Stage::WorkingDirectory);
    assert_eq!(host.start_refused(&denied), expected);
    let grouped = Spec::shell("id -gn").with(|spec| spec.user = "daemon:adm".into());
    assert_eq!(host.run(&grouped).1, "adm\n");
}

#[test]
fn a_user_that_does_not_exist_is_not_found() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let as_user = |user: &str| Spec::new(&["true"]).with(|spec| spec.user = user.into());
    let not_found = (FailureKind::NotFound, Stage::User);
    let invalid = (FailureKind::Invalid, Stage::User);
    for (user, expected) in [
        ("no-such-user", not_found),
        ("root:no-such-group", not_found),
        ("-1", not_found),
        ("4294967295", not_found),
        ("99999999999", not_found),
        (":", invalid),
        ("root:", invalid),
        (":root", invalid),
    ] {
        assert_eq!(host.start_refused(&as_user(user)), expected, "{user}");
    }
    for user in ["", "root", "0"] {
        assert_eq!(code(&host.run(&as_user(user)).0), 0, "{user}");
    }
}

#[test]
fn the_environment_is_completed_only_if_asked_for() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let environment = |env: &[&str], default_env| {
        Spec::new(&["/usr/bin/env"]).with(|spec| {
            spec.env = env.iter().map(|text| text.as_bytes().to_vec()).collect();
            spec.start.default_env = default_env;
        })
    };
    assert_eq!(host.run(&environment(&["A=b"], false)).1, "A=b\n");
    let path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    assert_eq!(
        host.run(&environment(&["A=b"], true)).1,
        format!("A=b\nHOME=/root\nLANG=C.UTF-8\nPATH={path}\nUSER=root\n")
    );
    let own = ["PATH=/bin", "USER=", "HOMER=x", "HOME=/here", "LANG=de"];
    assert_eq!(
        host.run(&environment(&own, true)).1,
        "PATH=/bin\nUSER=\nHOMER=x\nHOME=/here\nLANG=de\n"
    );
}

#[test]
fn a_large_environment_arrives_whole() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let spec = Spec::new(&["/usr/bin/env"]).with(|spec| {
        spec.env = (0..10_000)
            .map(|n| format!("V{n}=value-{n}").into_bytes())
            .collect();
    });
    let (exit, text) = host.run(&spec);
    assert_eq!(code(&exit), 0);
    let expected: String = (0..10_000).map(|n| format!("V{n}=value-{n}\n")).collect();
    assert_eq!(text, expected);
}

#[test]
fn a_timeout_ends_the_tree_and_says_so() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let timed = |script: &str, timeout_ms| {
        Spec::shell(script).with(|spec| spec.start.timeout_ms = timeout_ms)
    };
    let (exit, text) = host.run(&timed("echo printed; sleep 1000; echo never", 200));
    assert_eq!(exit.cause, ExitCause::Timeout);
    assert_eq!(text, "printed\n");
    assert!((200_000..5_000_000).contains(&exit.wall_us), "{exit:?}");
    assert_eq!(code(&host.run(&timed("exit 3", 60_000)).0), 3);
    for absurd in [u64::MAX, u64::MAX / 1_000_000, 1 << 62] {
        assert_eq!(code(&host.run(&timed("exit 4", absurd)).0), 4);
    }
    let background = timed("sleep 1000", 100).background();
    let (id, _) = host.spawn(&background);
    let stream = host.attach(Selector::Id(id), 0, 0);
    assert_eq!(host.exit(stream).cause, ExitCause::Timeout);
}

#[test]
fn a_process_that_is_killed_by_others_is_not_ours() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let (exit, _) = host.run(&Spec::shell("kill -9 $$"));
    assert_eq!(exit.cause, ExitCause::Signal(9));
    assert_eq!(exit.oom_kills, 0);
}

#[test]
fn every_byte_value_passes_in_both_directions() {
    let agent = RunningAgent::start();
    let mut host = agent.connect();
    let stream = host.start(&Spec::new(&["cat"]).with_stdin());
    let all: Vec<u8> = (0..=255).cycle().take(256 * 40).collect();
    host.write_stdin(stream, &all);
    host.send(|out| vmcell_wire::encode::end(out, stream, Channel::Stdin));
    host.exit(stream);
    assert_eq!(host.output(stream, Channel::Stdout), all);
}

#[test]
fn small_rings_and_large_windows_do_not_wait_for_each_other() {
    let agent = RunningAgent::start();
    for (keep, window) in [
        (1, 1 << 20),
        (16 * 1024, 4 << 20),
        (16 << 20, 10),
        (u32::MAX, 1000),
        (100_000, 64 * 1024),
    ] {
        let mut host = agent.connect_with_window(window);
        host.credit_automatically = false;
        let spec = Spec::shell("head -c 6000000 /dev/zero").with(|spec| spec.start.keep = keep);
        let stream = host.start(&spec);
        // Credit is returned as the host library does: half a window at a time.
        let half = (window / 2).max(1);
        let (mut seen, mut granted) = (0u64, 0u64);
        let total = if window < 1000 { 10_000 } else { 6_000_000 };
        while seen < total {
            for reply in host.until(|reply| matches!(reply, Reply::Data(..))) {
                if let Reply::Data(_, _, count) = reply {
                    seen += count as u64;
                }
            }
            while seen - granted >= u64::from(half) {
                host.grant(stream, Channel::Stdout, half);
                granted += u64::from(half);
            }
        }
    }
}
