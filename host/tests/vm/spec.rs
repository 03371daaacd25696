//! Settings of commands, and which are rejected.

use std::time::Duration;

use vmcell::{Command, Error, ExecFailureKind, ExecStage, OverflowPolicy, Resource, Vm};

use crate::{COMMAND_TIMEOUT, start};

async fn text(vm: &Vm, command: Command) -> String {
    let output = vm
        .exec_command(command.timeout(COMMAND_TIMEOUT))
        .await
        .unwrap();
    assert!(output.success(), "{output:?}");
    output.stdout_text()
}

async fn failure(vm: &Vm, command: Command) -> (ExecFailureKind, ExecStage) {
    match vm.exec_command(command).await.unwrap_err() {
        Error::Exec(failure) => (failure.kind, failure.stage),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_user_comes_with_groups_home_and_rights() {
    let vm = start().await;
    let setup = "echo 'extra:x:2000:other,cell' >> /etc/group";
    text(&vm, Command::shell(setup)).await;
    let who = "id -u; id -g; id -G; echo $HOME $USER; touch /etc/mine 2>/dev/null || echo denied";
    for (user, expected) in [
        ("cell", "1000\n1000\n1000 2000\n/home/cell cell\ndenied\n"),
        ("1000", "1000\n1000\n1000 2000\n/home/cell cell\ndenied\n"),
        ("4242", "4242\n4242\n4242\n/ 4242\ndenied\n"),
        ("4242:7", "4242\n7\n7\n/ 4242\ndenied\n"),
    ] {
        let said = text(&vm, Command::shell(who).user(user)).await;
        // The image decides the home of `cell`.
        let home = text(&vm, Command::shell("grep ^cell: /etc/passwd | cut -d: -f6")).await;
        assert_eq!(said, expected.replace("/home/cell", home.trim()), "{user}");
    }
    for unknown in ["nobody-here", "cell:nothing", "-1", ":", "99999999999"] {
        let (_, stage) = failure(&vm, Command::new("true").user(unknown)).await;
        assert_eq!(stage, ExecStage::User, "{unknown}");
    }
    assert_eq!(
        failure(&vm, Command::new("true").user("nobody-here"))
            .await
            .0,
        ExecFailureKind::NotFound
    );
    // A guest that breaks its own user database harms nobody else.
    for spoil in [
        "rm /etc/passwd; mkfifo /etc/passwd",
        "rm /etc/passwd; ln -s /dev/zero /etc/passwd",
        "rm /etc/passwd; yes : | dd of=/etc/passwd bs=64k count=64 2>/dev/null",
    ] {
        text(&vm, Command::shell(spoil)).await;
        let (_, stage) = failure(&vm, Command::new("true").user("cell")).await;
        assert_eq!(stage, ExecStage::User, "{spoil}");
    }
    assert!(vm.exec(["true"]).await.unwrap().success());
}

#[tokio::test]
async fn directories_masks_limits_and_niceness_are_set() {
    let vm = start().await;
    let inside = Command::shell("pwd; stat -c %u .; stat -c %u ..")
        .user("cell")
        .current_dir("/workspace/a/b")
        .create_current_dir();
    assert_eq!(text(&vm, inside).await, "/workspace/a/b\n1000\n1000\n");
    let elsewhere = Command::new("true")
        .user("cell")
        .current_dir("/etc/a/b")
        .create_current_dir();
    assert_eq!(
        failure(&vm, elsewhere).await,
        (ExecFailureKind::Denied, ExecStage::WorkingDirectory)
    );
    let file = Command::new("true").current_dir("/etc/passwd");
    assert_eq!(failure(&vm, file).await.1, ExecStage::WorkingDirectory);

    let masked = Command::shell("umask; touch /workspace/f; stat -c %a /workspace/f").umask(0o027);
    assert_eq!(text(&vm, masked).await, "0027\n640\n");
    let limited = Command::shell("ulimit -n; ulimit -Hn; cut -d' ' -f19 /proc/self/stat")
        .rlimit(Resource::OpenFiles, 17, 23)
        .nice(7);
    assert_eq!(text(&vm, limited).await, "17\n23\n7\n");
    let error = vm
        .exec_command(Command::new("true").rlimit(Resource::Stack, 2, 1))
        .await;
    assert_eq!(error.unwrap_err().code(), "invalid");
    let error = vm.exec_command(Command::new("true").nice(20)).await;
    assert_eq!(error.unwrap_err().code(), "invalid");
}

#[tokio::test]
async fn a_shell_line_gets_its_arguments_quoted_and_argv_never_sees_a_shell() {
    let vm = start().await;
    let command = Command::shell("printf '<%s>'").args(["a b", "it's", "$HOME", "*", ""]);
    assert_eq!(text(&vm, command).await, "<a b><it's><$HOME><*><>");
    let command = Command::from_argv(["printf", "<%s>", "$HOME; ls", "`id`"]);
    assert_eq!(text(&vm, command).await, "<$HOME; ls><`id`>");
}

#[tokio::test]
async fn an_environment_is_clean_and_may_be_large() {
    let vm = start().await;
    let bare = Command::from_argv(["/bin/busybox", "env"])
        .env_clear()
        .env("A", "b");
    assert_eq!(text(&vm, bare).await, "A=b\n");
    let replaced = Command::shell("echo $HOME; env | wc -l")
        .env("HOME", "/tmp")
        .env("GONE", "x")
        .env_remove("GONE");
    // HOME, LANG, PATH, USER, and what the shell adds: PWD, SHLVL.
    assert_eq!(text(&vm, replaced).await, "/tmp\n6\n");
    let many = (0..10_000).map(|number| (format!("N{number}"), number.to_string()));
    let counting = Command::shell("env | grep -c ^N").envs(many);
    assert_eq!(text(&vm, counting).await, "10000\n");
}

#[tokio::test]
async fn absurd_requests_are_refused_and_the_vm_stays_usable() {
    let vm = start().await;
    let invalid = [
        Command::from_argv(Vec::<String>::new()),
        Command::new(""),
        Command::from_argv(["echo", "a\0b"]),
        Command::from_argv(vec!["x".repeat(1000); 1000]),
        Command::new("true").env("A=B", "c"),
        Command::new("true").env("", "c"),
        Command::new("true").env("A", "\0"),
        Command::new("true").tag(""),
        Command::new("true").tag("a b"),
        Command::new("true").tag("x".repeat(65)),
    ];
    for command in invalid {
        let shown = format!("{command:.200?}");
        let error = vm.exec_command(command).await.unwrap_err();
        assert_eq!(error.code(), "invalid", "{shown}: {error}");
    }
    // A timeout that overflows the clock is no limit, and a timeout of zero
    // expires at once.
    let patient = Command::new("true").timeout(Duration::MAX);
    assert!(vm.exec_command(patient).await.unwrap().success());
    let hasty = Command::from_argv(["sleep", "10"]).timeout(Duration::ZERO);
    let error = vm.exec_command(hasty).await.unwrap_err();
    assert_eq!(error.code(), "timeout");
    let output = vm.exec(["true"]).await.unwrap();
    assert!(output.success(), "{output:?}");
}

#[tokio::test]
async fn every_byte_value_comes_back() {
    let vm = start().await;
    let bytes: Vec<u8> = (0..=255).cycle().take(5000).collect();
    let command = Command::shell("tee /dev/stderr").stdin(bytes.clone());
    let output = vm.exec_command(command).await.unwrap();
    assert!(output.stdout == bytes && output.stderr == bytes);
}

#[tokio::test]
async fn a_budget_keeps_the_beginning_or_both_ends_and_counts_the_rest() {
    let vm = start().await;
    let all: String = (1..=50_000).map(|number| format!("{number}\n")).collect();
    let command = || Command::shell("seq 1 50000; exit 5").max_output(1000);
    let output = vm
        .exec_command(command().on_overflow(OverflowPolicy::Stop))
        .await;
    let output = output.unwrap();
    assert_eq!(output.code(), Some(5));
    assert_eq!(output.stdout, &all.as_bytes()[..1000]);
    let gap = output.stdout_truncation.unwrap();
    assert_eq!((gap.at, gap.bytes), (1000, all.len() as u64 - 1000));

    let output = vm
        .exec_command(command().on_overflow(OverflowPolicy::HeadAndTail))
        .await;
    let output = output.unwrap();
    assert_eq!(output.code(), Some(5));
    assert_eq!(&output.stdout[..500], &all.as_bytes()[..500]);
    assert_eq!(&output.stdout[500..], &all.as_bytes()[all.len() - 500..]);
    let gap = output.stdout_truncation.unwrap();
    assert_eq!((gap.at, gap.bytes), (500, all.len() as u64 - 1000));
    assert!(
        output
            .stdout_text()
            .contains(&format!("[{} bytes dropped]", gap.bytes))
    );
    assert_eq!(output.stderr_truncation, None);
}
