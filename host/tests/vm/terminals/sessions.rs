//! Sessions that are left and attached to again.

use vmcell::{
    Cause, Command, Error, ExecFailureKind, Vm,
    terminal::{Key, Prompt, Screen, Status, Terminal, TerminalOptions, Unread},
};

use super::{SHORT, TEST_TIMEOUT, open, open_shell, start_debian, wait_for_prompt, wait_for_text};
use crate::{builder, start};

fn tagged(tag: &str) -> TerminalOptions {
    TerminalOptions::new().tag(tag)
}

#[tokio::test]
async fn a_session_is_made_by_its_first_use_and_never_by_a_look() {
    let vm = start().await;
    let terminals = vm.terminals();
    assert!(terminals.get("work").await.unwrap().is_none());
    let first = terminals
        .session("work", TerminalOptions::new())
        .await
        .unwrap();
    wait_for_prompt(&first).await;
    first.run("X=mine").await.unwrap();
    let again = terminals
        .session("work", TerminalOptions::new())
        .await
        .unwrap();
    assert_eq!(again.id(), first.id());
    assert!(
        again
            .run("echo is-$X")
            .await
            .unwrap()
            .text
            .contains("is-mine")
    );
    // Both are handles of the same terminal.
    assert_eq!(first.screen().text(), again.screen().text());

    let exit = first.terminate().await.unwrap();
    assert_eq!((exit.cause, exit.tree_ended), (Cause::Killed, Some(true)));
    let later = terminals
        .session("work", TerminalOptions::new())
        .await
        .unwrap();
    let reply = later.run("echo more").await.unwrap();
    assert_eq!(reply.status, Status::Terminated);
    assert!(reply.text.is_empty(), "{reply:?}");
    let list = terminals.list().await.unwrap();
    assert_eq!(list.len(), 1);
    assert!(list[0].exit.is_some() && list[0].tag == "work");
    later.forget().await.unwrap();
    assert!(terminals.list().await.unwrap().is_empty());
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn another_program_sees_the_same_screen_and_types_too() {
    let id = format!("shared-terminal-{}", std::process::id());
    let vm = builder().id(&id).start().await.unwrap();
    let ours = open(&vm, tagged("shared")).await;
    wait_for_prompt(&ours).await;
    ours.run("echo from the owner").await.unwrap();

    let client = Vm::attach(&id).await.unwrap();
    let theirs = client.terminals().attach("shared").await.unwrap();
    wait_for_text(&theirs, "^from the owner").await;
    theirs.run("echo from the client").await.unwrap();
    wait_for_text(&ours, "^from the client").await;
    ours.run("echo and back").await.unwrap();
    wait_for_text(&theirs, "^and back").await;
    assert_eq!(ours.screen().text(), theirs.screen().text());
    let unknown = client.terminals().attach("other").await.unwrap_err();
    assert!(matches!(&unknown, Error::Exec(failure) if failure.kind == ExecFailureKind::NotFound));

    // It keeps running without handles.
    drop(theirs);
    drop(client);
    drop(ours);
    let again = vm.terminals().attach("shared").await.unwrap();
    wait_for_text(&again, "^from the client").await;
    again.set_tag("renamed").await.unwrap();
    assert_eq!(again.info().await.unwrap().tag, "renamed");
    assert!(vm.terminals().get("shared").await.unwrap().is_none());
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn a_broken_link_goes_unnoticed() {
    let vm = start().await;
    let script = "stty raw -echo; echo ready; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); \
                  printf '%s ' $i; done; head -c 40000 | sha256sum";
    let options = TerminalOptions::command(Command::shell(script)).unread(Unread::Kept);
    let terminal = open(&vm, options).await;
    // Before that the kernel echoes the input, and limits its lines.
    wait_for_text(&terminal, "ready").await;
    let mut follow = terminal.follow();
    let reading = async {
        let mut all = Vec::new();
        while let Some(bytes) = follow.next().await {
            let before = all.len();
            all.extend(bytes);
            if before / 4096 != all.len() / 4096 {
                vm.reconnect().unwrap();
            }
        }
        String::from_utf8(all).unwrap()
    };
    let typed = "0123456789".repeat(4000);
    let input = terminal.input();
    let typing = async {
        for piece in typed.as_bytes().chunks(4999) {
            assert!(input.write(piece.to_vec()).await);
            vm.reconnect().unwrap();
        }
    };
    let (all, ()) = tokio::join!(reading, typing);
    let mut numbers = all.split_whitespace().skip(1);
    for number in 1..=20000u32 {
        assert_eq!(numbers.next().unwrap().parse(), Ok(number));
    }
    let expected = vm
        .exec_with(["sha256sum"], |command| command.stdin(typed))
        .await
        .unwrap();
    let sum = expected.stdout_text();
    assert_eq!(numbers.next(), sum.split_whitespace().next());
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn characters_may_come_in_pieces() {
    let vm = start().await;
    // The pieces arrive separately, because the program waits for a key between.
    let script = r#"stty -echo; for piece in '\342' '\202' '\254 \346' '\227\245'; do
                   printf "$piece"; read x; done; echo ' end'"#;
    let terminal = open(&vm, TerminalOptions::command(Command::shell(script))).await;
    for _ in 0..4 {
        terminal.send_key(Key::Enter).quiet(SHORT).await.unwrap();
    }
    wait_for_text(&terminal, "€ 日 end").await;
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn what_nobody_reads_is_dropped_and_told() {
    let vm = start().await;
    vm.exec(["mkfifo", "/tmp/over"]).await.unwrap();
    // More than the guest keeps.
    let script = "seq 1 300000 > /tmp/all; cat /tmp/all; echo over; echo > /tmp/over; read x";
    let command = Command::shell(script).tag("talker");
    let terminal = open(&vm, TerminalOptions::command(command)).await;
    drop(terminal);
    let over = Command::from_argv(["cat", "/tmp/over"]).timeout(TEST_TIMEOUT);
    vm.exec_command(over).await.unwrap();
    let terminal = vm.terminals().attach("talker").await.unwrap();
    wait_for_text(&terminal, "over").await;
    let reply = terminal.read(0).await.unwrap();
    assert!(reply.lost > 300_000, "{}", reply.lost);
    assert_eq!(
        terminal.screen().health,
        vmcell::terminal::ScreenHealth::Incomplete
    );
    assert!(screen_lines(&terminal.screen()).contains(&"300000".to_owned()));
    vm.kill().await.unwrap();
}

fn screen_lines(screen: &Screen) -> Vec<String> {
    screen.text().lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn views_take_nothing_and_change_nothing() {
    let vm = start_debian().await;
    let terminal = open_shell(&vm).await;
    terminal.run("seq 1 100").await.unwrap();
    let before = terminal.screen().text();
    assert!(before.contains("\n100\n"), "{before}");
    let scrolled = terminal.scrollback(20);
    assert_eq!(scrolled.len(), 20);
    assert!(scrolled.windows(2).all(|pair| {
        let numbers: Vec<u32> = pair.iter().map(|line| line.parse().unwrap()).collect();
        numbers[0] + 1 == numbers[1]
    }));
    terminal.clear_scrollback();
    assert!(terminal.scrollback(20).is_empty());
    assert_eq!(terminal.screen().text(), before);
    // Reading by offset can be repeated.
    let all = terminal.read(0).await.unwrap();
    assert_eq!(terminal.read(0).await.unwrap().raw, all.raw);
    let part = terminal.read(10).max_bytes(5).await.unwrap();
    assert_eq!((part.start, part.end, part.more), (10, 15, true));
    assert_eq!(part.raw, all.raw[10..15]);
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn a_prompt_of_ones_own_is_recognised() {
    let vm = start_debian().await;
    let terminal = open_shell(&vm).await;
    let reply = terminal.run("PS1='what now, captain: '").await.unwrap();
    assert_eq!(reply.prompt, Prompt::Unknown, "{reply:?}");
    terminal.set_prompt(Some("captain: $")).unwrap();
    let info = terminal.info().await.unwrap();
    assert_eq!((info.status, info.prompt), (Status::Ready, Prompt::Shell));
    let wrong = terminal.set_prompt(Some("(")).unwrap_err();
    assert!(matches!(wrong, Error::Invalid(_)), "{wrong:?}");
    vm.kill().await.unwrap();
}

#[tokio::test]
async fn the_end_of_the_vm_is_told_to_who_waits() {
    let vm = start().await;
    let terminal = open_shell(&vm).await;
    let waiting = async { terminal.expect("never").unwrap().await };
    let (outcome, killed) = tokio::join!(waiting, vm.kill());
    killed.unwrap();
    let over = |error: &Error| matches!(error, Error::Gone(_));
    match outcome {
        Ok(expected) => assert!(expected.found.is_none()),
        Err(error) => assert!(over(&error), "{error:?}"),
    }
    let error = Terminal::run(&terminal, "echo").await.unwrap_err();
    assert!(over(&error), "{error:?}");
}
