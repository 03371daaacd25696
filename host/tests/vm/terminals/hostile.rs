//! Hostile output.

use std::time::SystemTime;

use vmcell::terminal::Status;

use super::{TEST_TIMEOUT, open_command, open_shell, start_debian, wait_for_text};
use crate::start;

/// Returns the resident memory of this process in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS"))
        .unwrap();
    line.split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<usize>()
        .unwrap()
        * 1024
}

#[tokio::test]
async fn escape_sequences_can_neither_fill_the_memory_nor_type() {
    let vm = start_debian().await;
    let terminal = open_shell(&vm).await;
    let before = resident();
    for sequence in [
        // A title that is a command, and the query that would return it as input.
        r"\033]0;rm -rf /\007\033[21t",
        // The clipboard, written and read.
        r"\033]52;c;cm0gLXJmIC8=\007\033]52;c;?\007",
        // Huge parameters.
        r"x\033[999999999b\033[999999999L\033[999999999@\033[999999999S\033[999999999T",
        r"\033[999999999;999999999H\033[999999999;1r\033[r",
        // Queries whose replies could hold text of the program.
        r"\033P$qm\033\\\033P+q544e\033\\\005",
    ] {
        let reply = terminal.run(format!("printf '{sequence}'")).await.unwrap();
        assert_ne!(reply.status, Status::Eof, "{sequence}");
        terminal.run("clear").await.unwrap();
    }
    let title = terminal.screen().title;
    assert!(!title.contains(|c: char| c.is_control()), "{title:?}");
    // There was no input but that of this test.
    terminal.run("clear; echo checked").await.unwrap();
    wait_for_text(&terminal, "^checked").await;
    assert!(!terminal.screen().text().contains("rm -rf"));
    // A string that never ends.
    let endless = r"printf '\033]0;'; yes | head -c 20000000; printf '\007'; echo after-all";
    terminal.run(endless).timeout(TEST_TIMEOUT).await.unwrap();
    wait_for_text(&terminal, "^after-all").await;
    let grown = resident().saturating_sub(before);
    assert!(grown < 64 << 20, "it grew by {grown} bytes");
    vm.kill().await.unwrap();
}

fn random_bytes(seed: u64, count: usize) -> Vec<u8> {
    let mut state = seed;
    let next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as u8
    };
    std::iter::repeat_with(next).take(count).collect()
}

#[tokio::test]
async fn random_bytes_leave_a_terminal_that_works() {
    let vm = start_debian().await;
    let seed = SystemTime::UNIX_EPOCH.elapsed().unwrap().subsec_nanos();
    println!("the seed of the bytes is {seed}");
    let bytes = random_bytes(seed.into(), 3_000_000);
    vm.files().write("/tmp/random", bytes).await.unwrap();
    let script = "cat /tmp/random; reset; echo over-$((1 + 1)); exec sh";
    let terminal = open_command(&vm, script).await;
    wait_for_text(&terminal, "over-2").await;
    // Clears replies to random queries from the command line.
    terminal.send_control('c').await.unwrap();
    terminal.run("clear").await.unwrap();
    terminal.run("echo a-$((40 + 2))").await.unwrap();
    wait_for_text(&terminal, "a-42").await;
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn a_program_gets_one_answer_to_each_question() {
    let vm = start().await;
    let script = r"stty raw -echo; printf '\033[6n'; dd bs=1 count=6 status=none | od -c; \
                   printf '\033[c'; dd bs=1 count=3 status=none | od -c; stty sane; read x";
    let terminal = open_command(&vm, script).await;
    wait_for_text(&terminal, r"033 +\[ +1 +; +1 +R").await;
    wait_for_text(&terminal, r"033 +\[ +\?").await;
    vm.kill().await.unwrap();
}
