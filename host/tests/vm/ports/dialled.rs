//! Connections that this program dials.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use vmcell::{Error, Vm, port::PortError};

use super::{dial, noise, read_all, serve, wait_for_reset, within};
use crate::start;

#[tokio::test]
async fn what_is_written_comes_back_from_who_echoes_it() {
    let vm = start().await;
    serve(&vm, 7, &["cat"]).await;
    let mut echo = dial(&vm, 7).await;
    let mut heard = [0; 5];
    for word in ["hello", "again"] {
        echo.write_all(word.as_bytes()).await.unwrap();
        within(echo.read_exact(&mut heard)).await.unwrap();
        assert_eq!(heard, word.as_bytes());
    }
    // More than all buffers hold, both ways at once, then the end of each side.
    let bytes = noise(8_000_000);
    let (reader, mut writer) = echo.into_split();
    let sent = bytes.clone();
    let writing = tokio::spawn(async move {
        writer.write_all(&sent).await.unwrap();
        writer.shutdown().await.unwrap();
    });
    let (received, outcome) = read_all(reader).await;
    outcome.unwrap();
    writing.await.unwrap();
    assert!(received == bytes, "{} bytes came back", received.len());
}

#[tokio::test]
async fn each_side_can_end_first() {
    let vm = start().await;
    // It answers when it has read everything.
    serve(&vm, 80, &["sha256sum"]).await;
    let mut asking = dial(&vm, 80).await;
    asking.write_all(b"hello\n").await.unwrap();
    asking.shutdown().await.unwrap();
    let (answer, outcome) = read_all(&mut asking).await;
    outcome.unwrap();
    assert!(
        answer.starts_with(b"5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03")
    );
    // It exits without having read anything.
    serve(&vm, 81, &["echo", "all I know"]).await;
    let mut listening = dial(&vm, 81).await;
    let (said, outcome) = read_all(&mut listening).await;
    outcome.unwrap();
    assert_eq!(said, b"all I know\n");
    listening.shutdown().await.unwrap();
}

#[tokio::test]
async fn where_nobody_listens_the_error_says_so() {
    let vm = start().await;
    let error = vm.ports().dial(8080).await.unwrap_err();
    assert!(
        matches!(error, Error::Port(PortError::NobodyListens { port: 8080 })),
        "{error:?}"
    );
    assert_eq!(error.code(), "nobody-listens");
    assert!(error.to_string().contains("8080"), "{error}");
    let error = vm.ports().dial(0).await.unwrap_err();
    assert!(matches!(error, Error::Port(_)), "{error:?}");
    vm.kill().await.unwrap();
    let error = vm.ports().dial(8080).await.unwrap_err();
    assert!(matches!(error, Error::Gone(_)), "{error:?}");
}

#[tokio::test]
async fn a_connection_that_is_dropped_ends_the_program_behind_it() {
    let vm = start().await;
    serve(&vm, 7, &["cat"]).await;
    let is_there = async || {
        let found = vm.exec(["pidof", "cat"]).await.unwrap();
        found.success()
    };
    let mut connection = dial(&vm, 7).await;
    connection.write_all(b"x").await.unwrap();
    within(connection.read_exact(&mut [0])).await.unwrap();
    assert!(is_there().await);
    drop(connection);
    within(async { while is_there().await {} }).await;
}

#[tokio::test]
async fn a_program_that_breaks_a_connection_is_told_from_one_that_ends_it() {
    let vm = start().await;
    // It exits while there is unread input.
    serve(&vm, 7, &["sh", "-c", "read line; echo $line; read line"]).await;
    let mut connection = dial(&vm, 7).await;
    let lines = b"first\nsecond\nthird\n";
    connection.write_all(lines).await.unwrap();
    wait_for_reset(&mut connection).await;
}

#[tokio::test]
async fn connections_break_with_the_link_and_new_ones_do_not() {
    let vm = start().await;
    serve(&vm, 7, &["cat"]).await;
    let client = Vm::attach(vm.id()).await.unwrap();
    let mut ours = dial(&vm, 7).await;
    let mut theirs = dial(&client, 7).await;
    for connection in [&mut ours, &mut theirs] {
        connection.write_all(b"x").await.unwrap();
        within(connection.read_exact(&mut [0])).await.unwrap();
    }
    vm.reconnect().unwrap();
    wait_for_reset(ours).await;
    wait_for_reset(theirs).await;
    for vm in [&vm, &client] {
        let mut again = dial(vm, 7).await;
        again.write_all(b"again").await.unwrap();
        again.shutdown().await.unwrap();
        assert_eq!(read_all(again).await.0, b"again");
    }
}
