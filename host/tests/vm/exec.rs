//! Commands in a real guest.

use vmcell::{Cause, Command, Error, ExecEvent, ExecFailureKind, ExecStage};

use crate::{short_timeout, start};

#[tokio::test]
async fn a_command_is_a_child_of_pid_1_and_its_outputs_come_apart() {
    let vm = start().await;
    let script = "echo $PPID; cat /proc/1/comm; echo problem >&2; exit 7";
    let output = vm.exec(["sh", "-c", script]).await.unwrap();
    assert_eq!(output.stdout_text(), "1\ninit\n");
    assert_eq!(output.stderr_text(), "problem\n");
    assert_eq!(output.code(), Some(7));
    let exit = output.exit.unwrap();
    assert_eq!(exit.tree_ended, Some(true));
    assert!(!exit.outputs_cut && exit.peak_memory > 0 && !exit.wall_time.is_zero());
}

/// Logging a handle with `{:?}` must not log what was given to the command.
#[tokio::test]
async fn handles_of_a_command_are_printed_without_its_environment_and_input() {
    const SECRET: &str = "s3cret";
    let vm = start().await;
    let command = Command::from_argv(["sleep", "1000"])
        .env("TOKEN", SECRET)
        .stdin_stream();
    // Until the guest confirms the start, the request is kept to be sent again.
    let mut stream = vm.exec_stream(command).unwrap();
    let mut printed = format!("{stream:?}");
    stream.next().await.unwrap();
    // So is input that is not acknowledged.
    assert!(stream.input().write(SECRET).await);
    printed += &format!("{stream:?} {:?}", stream.input());
    printed += &format!("{:?}", stream.into_parts());
    // As text, or as a list of bytes.
    let numbers = format!("{:?}", SECRET.as_bytes());
    let numbers = numbers.trim_matches(['[', ']']);
    for secret in [SECRET, numbers] {
        assert!(!printed.contains(secret), "{printed}");
    }
}

#[tokio::test]
async fn what_cannot_start_is_a_typed_failure_and_not_an_exit_code() {
    let vm = start().await;
    for (argv, directory, kind, errno, stage) in [
        (
            ["no-such-program"],
            "/",
            ExecFailureKind::NotFound,
            2,
            ExecStage::Exec,
        ),
        (
            ["/etc/passwd"],
            "/",
            ExecFailureKind::Denied,
            13,
            ExecStage::Exec,
        ),
        (
            ["true"],
            "/nowhere",
            ExecFailureKind::NotFound,
            2,
            ExecStage::WorkingDirectory,
        ),
    ] {
        let command = Command::from_argv(argv).current_dir(directory);
        match vm.exec_command(command).await.unwrap_err() {
            Error::Exec(failure) => {
                assert_eq!((failure.kind, failure.stage), (kind, stage), "{argv:?}");
                assert_eq!(failure.errno, Some(errno));
            }
            other => panic!("{argv:?}: {other:?}"),
        }
    }
    // Invalid requests are not sent to the guest.
    for argv in [vec![], vec!["".to_owned()], vec!["a\0b".to_owned()]] {
        let error = vm.exec(argv).await.unwrap_err();
        assert_eq!(error.code(), "invalid", "{error}");
    }
    let error = vm.exec(["echo", &"x".repeat(300_000)]).await.unwrap_err();
    assert_eq!(error.code(), "invalid", "{error}");
    assert!(vm.exec(["true"]).await.unwrap().success());
}

#[tokio::test]
async fn environment_directory_and_input_are_what_the_caller_says() {
    let vm = start().await;
    let command = Command::new("sh")
        .args(["-c", "env | sort; pwd; cat"])
        .env("GREETING", "hi there")
        .current_dir("/workspace")
        .stdin("from the host");
    let output = vm.exec_command(command).await.unwrap();
    let expected = "GREETING=hi there\nHOME=/root\nLANG=C.UTF-8\n\
                    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n\
                    PWD=/workspace\nSHLVL=1\nUSER=root\n/workspace\nfrom the host";
    assert_eq!(output.stdout_text(), expected);
}

#[tokio::test]
async fn megabytes_go_in_and_come_back_unchanged() {
    let vm = start().await;
    // A pattern in which every shift or repetition of chunks would be noticed.
    let bytes: Vec<u8> = (0..3_000_000u32)
        .map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let output = vm
        .exec_with(["cat"], |command| command.stdin(bytes.clone()))
        .await
        .unwrap();
    assert!(
        output.stdout == bytes,
        "{} bytes came back",
        output.stdout.len()
    );
}

#[tokio::test]
async fn a_timeout_ends_the_whole_tree_and_proves_it() {
    let vm = start().await;
    let command = Command::new("sh")
        .args(["-c", "echo begun; setsid sleep 1000 & sleep 1000"])
        // Long enough for a shell to start.
        .timeout(short_timeout(&vm).await);
    let error = vm.exec_command(command).await.unwrap_err();
    let Error::ExecTimeout { partial, .. } = error else {
        panic!("{error:?}");
    };
    assert_eq!(partial.stdout, b"begun\n");
    let exit = partial.exit.expect("the guest confirms the end");
    assert_eq!(exit.cause, Cause::Timeout);
    assert_eq!(exit.tree_ended, Some(true));
    let left = vm.exec(["pidof", "sleep"]).await.unwrap();
    assert_eq!(left.stdout_text(), "", "something survived");
}

#[tokio::test]
async fn too_much_output_ends_the_command() {
    let vm = start().await;
    let error = vm
        .exec_with(["yes"], |command| command.max_output(100_000))
        .await
        .unwrap_err();
    let Error::OutputLimit { limit, partial } = error else {
        panic!("{error:?}");
    };
    assert_eq!((limit, partial.stdout.len()), (100_000, 100_000));
    assert_eq!(partial.exit.unwrap().tree_ended, Some(true));
}

#[tokio::test]
async fn a_flood_that_nobody_reads_leaves_memory_flat_and_others_unharmed() {
    let vm = start().await;
    let mut flood = vm.exec_stream(Command::new("yes")).unwrap();
    let Some(ExecEvent::Started { pid }) = flood.next().await.unwrap() else {
        panic!("it did not start");
    };
    let before = resident_kib();
    for _ in 0..40 {
        assert!(vm.exec(["true"]).await.unwrap().success());
    }
    let grown = resident_kib().saturating_sub(before);
    assert!(grown < 8 * 1024, "the host grew by {grown} KiB");

    // It eventually blocks in the guest, in a write to its pipe, and stays
    // there.
    let stat = format!("/proc/{pid}/stat");
    let mut samples = Vec::new();
    while !asleep_for_good(&samples) {
        assert!(
            samples.len() < 500,
            "it still burns time: {:?}",
            samples.last()
        );
        samples.push(vm.exec(["cat", &stat]).await.unwrap().stdout_text());
    }

    drop(flood);
    let gone = format!("while kill -0 {pid} 2>/dev/null; do :; done");
    assert!(vm.exec(["sh", "-c", &gone]).await.unwrap().success());
}

/// Returns whether the last lines of `/proc/pid/stat` show one long sleep.
fn asleep_for_good(samples: &[String]) -> bool {
    samples.len() >= 10
        && samples
            .iter()
            .rev()
            .take(10)
            .all(|sample| sample.contains(" S ") && Some(sample) == samples.last())
}

fn resident_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn events_come_in_order_and_the_stream_ends() {
    let vm = start().await;
    let command = Command::new("sh").args(["-c", "read line; echo got $line; exit 2"]);
    let mut events = vm.exec_stream(command.stdin_stream()).unwrap();
    assert!(matches!(
        events.next().await.unwrap(),
        Some(ExecEvent::Started { .. })
    ));
    let input = events.input();
    assert!(input.write("a line\n").await);
    input.end();
    let mut stdout = Vec::new();
    let exit = loop {
        match events.next().await.unwrap().unwrap() {
            ExecEvent::Stdout(bytes) => stdout.extend(bytes),
            ExecEvent::Exited(exit) => break exit,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(stdout, b"got a line\n");
    assert_eq!(exit.cause, Cause::Code(2));
    assert_eq!(events.next().await.unwrap(), None);
    assert!(!input.write("nobody reads this").await);
}

#[tokio::test]
async fn fifty_commands_at_once() {
    let vm = start().await;
    let tasks: Vec<_> = (0..50)
        .map(|number| {
            let vm = vm.clone();
            tokio::spawn(async move {
                let output = vm.exec(["echo".to_owned(), number.to_string()]).await;
                (number, output.unwrap().stdout_text())
            })
        })
        .collect();
    for task in tasks {
        let (number, text) = task.await.unwrap();
        assert_eq!(text, format!("{number}\n"));
    }
}

#[tokio::test]
async fn the_agent_stays_small_after_a_thousand_commands() {
    const LIMIT_KIB: usize = 1024;
    let vm = start().await;
    let resident = || async {
        let output = vm.exec(["grep", "VmRSS", "/proc/1/status"]).await.unwrap();
        let text = output.stdout_text();
        let size: usize = text.split_whitespace().nth(1).unwrap().parse().unwrap();
        size
    };
    let after_boot = resident().await;
    for _ in 0..1000 {
        vm.exec(["true"]).await.unwrap();
    }
    let after_commands = resident().await;
    println!("agent: {after_boot} KiB after boot, {after_commands} KiB after 1,000 commands");
    assert!(after_boot <= LIMIT_KIB, "{after_boot} KiB after boot");
    assert!(
        after_commands <= LIMIT_KIB,
        "{after_commands} KiB after 1,000 commands"
    );
    let output = vm.exec(["ls", "/sys/fs/cgroup/vmcell"]).await.unwrap();
    let text = output.stdout_text();
    let groups = text
        .lines()
        .filter(|line| line.parse::<u32>().is_ok())
        .count();
    assert!(groups <= 5, "cgroups pile up: {text}");
}

#[tokio::test]
async fn the_guest_is_what_programs_expect() {
    let vm = builder_with_two_processors().await;
    let script = r#"
        set -e
        test "$(nproc)" = 2
        test "$(hostname)" = cell-7
        test "$(cat /proc/sys/kernel/random/entropy_avail)" -ge 256
        echo x > /dev/null; test -c /dev/tty; test -d /dev/pts; test -w /dev/shm; test -w /run
        test "$(stat -c %u /workspace)" = 1000
        ping -c 1 -W 20 127.0.0.1 > /dev/null
        unshare -r id -u
        ls /vmcell-boot /init 2>/dev/null || echo gone
    "#;
    let output = vm.exec(["sh", "-c", script]).await.unwrap();
    assert!(output.success(), "{output:?}");
    assert_eq!(output.stdout_text(), "0\ngone\n");
    let host = || {
        let now = std::time::SystemTime::now();
        now.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
    };
    // However long the command takes, it reads the clock between these two
    // times.
    let before = host();
    let output = vm.exec(["date", "+%s"]).await.unwrap();
    let after = host();
    let guest: u64 = output.stdout_text().trim().parse().unwrap();
    assert!(
        (before - 2..=after + 2).contains(&guest),
        "the guest's clock is off: {guest} for {before} to {after}"
    );
}

async fn builder_with_two_processors() -> vmcell::Vm {
    let builder = crate::builder().vcpus(2).hostname("cell-7");
    builder.start().await.unwrap()
}
