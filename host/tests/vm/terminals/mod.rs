//! Terminals with real programs on them.

mod full_screen;
mod hostile;
mod prompts;
mod records;
mod repls;
mod sessions;
mod shells;
mod waits;

use std::time::Duration;

use vmcell::{
    Command, Vm,
    terminal::{Reply, Status, Terminal, TerminalOptions},
};

use crate::builder;

/// Long, because programs are slow under emulation.
const TEST_TIMEOUT: Duration = Duration::from_secs(240);

/// For operations without output, or whose output is awaited in another way.
const SHORT: Duration = Duration::from_millis(100);

/// Starts a VM of the environment `debian`, which has common programs.
async fn start_debian() -> Vm {
    let image = vmcell_rootfs::recipe::debian().cached().unwrap().path;
    let builder = builder().image(image).memory_mib(256);
    builder.start().await.unwrap()
}

/// Opens a shell and waits for its first prompt.
async fn open_shell(vm: &Vm) -> Terminal {
    let terminal = open(vm, TerminalOptions::new()).await;
    wait_for_prompt(&terminal).await;
    terminal
}

async fn open(vm: &Vm, options: TerminalOptions) -> Terminal {
    let options = options.timeout(TEST_TIMEOUT);
    vm.terminals().open(options).await.unwrap()
}

async fn open_command(vm: &Vm, line: &str) -> Terminal {
    open(vm, TerminalOptions::command(Command::shell(line))).await
}

async fn wait_for_prompt(terminal: &Terminal) {
    let expected = terminal.expect_prompt().await.unwrap();
    assert!(expected.found.is_some(), "{expected:?}");
    assert_eq!(expected.reply.status, Status::Ready);
}

/// Waits for a pattern. Prints the screen if it does not appear.
async fn wait_for_text(terminal: &Terminal, pattern: &str) -> Reply {
    let expected = terminal.expect(pattern).unwrap().await.unwrap();
    assert!(
        expected.found.is_some(),
        "no {pattern:?} on:\n{}",
        terminal.screen().text()
    );
    expected.reply
}

/// Waits until this program is in the foreground: earlier input would go to the
/// shell.
async fn wait_for_foreground(terminal: &Terminal, command: &str) {
    let waiting = async {
        while terminal.info().await.unwrap().foreground_command.as_deref() != Some(command) {
            terminal.poll_output().timeout(SHORT).await.unwrap();
        }
    };
    let there = tokio::time::timeout(TEST_TIMEOUT, waiting).await;
    assert!(there.is_ok(), "{:?}", terminal.info().await);
}

/// Waits until the terminal has this status.
async fn wait_for_status(terminal: &Terminal, status: Status) {
    let waiting = async {
        loop {
            let now = terminal.info().await.unwrap().status;
            if now == status {
                return;
            }
            // It usually changes with new output.
            let second = Duration::from_secs(1);
            terminal.poll_output().timeout(second).await.unwrap();
        }
    };
    let settled = tokio::time::timeout(TEST_TIMEOUT, waiting).await;
    assert!(
        settled.is_ok(),
        "{:?} instead of {status:?} on:\n{}",
        terminal.info().await,
        terminal.screen().text()
    );
}
