//! Shells: their state, job control and signals.

use vmcell::{
    Cause, Signal,
    terminal::{Prompt, Status, TerminalOptions, TerminalSize},
};

use super::{
    SHORT, open, open_shell, start_debian, wait_for_foreground, wait_for_prompt, wait_for_status,
    wait_for_text,
};
use crate::start;

#[tokio::test]
async fn a_session_keeps_its_directory_its_variables_and_its_jobs() {
    let vm = start_debian().await;
    let terminal = open_shell(&vm).await;
    let reply = terminal
        .run("cd /var/tmp && X=kept; sleep 1000 &")
        .await
        .unwrap();
    assert_eq!((reply.status, reply.prompt), (Status::Ready, Prompt::Shell));
    assert!(!reply.timed_out);
    let reply = terminal.run("echo \"$PWD-$X\"; jobs").await.unwrap();
    assert!(reply.text.contains("/var/tmp-kept\n"), "{reply:?}");
    assert!(reply.text.contains("Running"), "{reply:?}");
    // A reply holds only new output.
    assert!(!reply.text.contains("cd /var/tmp"), "{reply:?}");
    let info = terminal.info().await.unwrap();
    assert_eq!(info.current_dir, Some("/var/tmp".into()));
    assert_eq!(info.foreground_command.as_deref(), Some("bash"));
    assert_eq!(info.foreground_pid, Some(terminal.pid()));
    assert_eq!((info.size.columns, info.size.rows), (120, 30));
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn busybox_has_a_prompt_and_its_exit_ends_the_session() {
    let vm = start().await;
    let terminal = open_shell(&vm).await;
    let reply = terminal.run("echo $((6 * 7)); tty").await.unwrap();
    assert!(reply.text.contains("42\n/dev/pts/0\n"), "{reply:?}");
    assert_eq!(reply.status, Status::Ready);
    let reply = terminal.run("exit 7").await.unwrap();
    assert_eq!(reply.status, Status::Eof);
    assert_eq!(terminal.wait().await.unwrap().cause, Cause::Code(7));
    // Its output is still there, and operations still return.
    assert!(terminal.screen().text().contains("exit 7"));
    let reply = terminal.run("echo more").await.unwrap();
    assert_eq!((reply.status, &reply.text[..]), (Status::Eof, ""));
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn control_c_ends_a_pipeline_and_the_shell_goes_on() {
    let vm = start_debian().await;
    let terminal = open_shell(&vm).await;
    let reply = terminal
        .run("yes | cat > /dev/null")
        .quiet(SHORT)
        .await
        .unwrap();
    assert_eq!(reply.prompt, Prompt::None);
    wait_for_foreground(&terminal, "yes").await;
    wait_for_status(&terminal, Status::Running).await;
    let info = terminal.info().await.unwrap();
    assert_ne!(info.foreground_pid, Some(terminal.pid()));
    let reply = terminal.send_control('c').await.unwrap();
    assert_eq!(reply.status, Status::Ready, "{reply:?}");
    let reply = terminal.run("echo $?; pgrep -c yes").await.unwrap();
    assert!(reply.text.contains("130\n0\n"), "{reply:?}");
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn a_job_is_stopped_goes_on_behind_and_comes_back() {
    let vm = start_debian().await;
    let terminal = open_shell(&vm).await;
    terminal.run("sleep 1000").quiet(SHORT).await.unwrap();
    wait_for_foreground(&terminal, "sleep").await;
    let reply = terminal.send_control('z').await.unwrap();
    assert!(reply.text.contains("Stopped"), "{reply:?}");
    assert_eq!(reply.status, Status::Ready);
    terminal.run("bg").await.unwrap();
    let reply = terminal.run("jobs").await.unwrap();
    assert!(reply.text.contains("Running"), "{reply:?}");
    terminal.run("fg").quiet(SHORT).await.unwrap();
    wait_for_foreground(&terminal, "sleep").await;
    assert_eq!(
        terminal.info().await.unwrap().foreground_command.as_deref(),
        Some("sleep")
    );
    // A signal reaches only the foreground.
    let reply = terminal.send_signal(Signal::TERM).await.unwrap();
    assert!(reply.text.contains("Terminated"), "{reply:?}");
    assert_eq!(reply.status, Status::Ready);
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn a_program_hears_of_a_new_size() {
    let vm = start().await;
    let size = TerminalSize::new(80, 24).unwrap();
    let terminal = open(&vm, TerminalOptions::new().size(size)).await;
    wait_for_prompt(&terminal).await;
    let reply = terminal.run("stty size").await.unwrap();
    assert!(reply.text.contains("24 80\n"), "{reply:?}");
    let script = "trap 'echo resized to $(stty size)' WINCH; echo waits-$((1 + 1)); \
                  while :; do read -t 1 x; done";
    terminal.run(script).quiet(SHORT).await.unwrap();
    // Before that, the trap is not set.
    wait_for_text(&terminal, "waits-2").await;
    terminal
        .resize(TerminalSize::new(132, 43).unwrap())
        .await
        .unwrap();
    wait_for_text(&terminal, "resized to 43 132").await;
    assert_eq!(terminal.screen().size.columns, 132);
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn a_command_that_takes_its_time_is_waited_for() {
    let vm = start().await;
    let terminal = open_shell(&vm).await;
    let reply = terminal
        .run("sleep 2; echo done-$((1 + 1))")
        .quiet(SHORT)
        .await
        .unwrap();
    assert_eq!(reply.status, Status::Running, "{reply:?}");
    assert!(!reply.text.contains("done-2"), "{reply:?}");
    let reply = terminal.poll_output().await.unwrap();
    assert!(!reply.text.is_empty() && !reply.timed_out, "{reply:?}");
    wait_for_text(&terminal, "done-2").await;
    wait_for_status(&terminal, Status::Ready).await;
    terminal.poll_output().timeout(SHORT).await.unwrap();
    let reply = terminal.poll_output().timeout(SHORT).await.unwrap();
    assert!(reply.timed_out && reply.text.is_empty(), "{reply:?}");
    vm.kill().await.unwrap();
}
