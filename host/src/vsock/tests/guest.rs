//! The part of the test that runs in the guest.

use std::{io, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
    time::timeout,
};

use super::{CONTROL_PORT, DATA_PORT, FROM_GUEST, FROM_HOST, SIZE, UNUSED_PORT, bytes};
use crate::vsock::{VsockListener, connect};

/// The variable that is set in the guest.
pub(super) const ROLE_VARIABLE: &str = "VMCELL_TEST_ROLE";

/// The name of the test below.
pub(super) const TEST_NAME: &str = "vsock::tests::guest::the_part_that_runs_in_a_guest";

/// What it reports to its host.
pub(super) const CONNECTED: u8 = 1;
pub(super) const STILL_WAITING: u8 = 2;
pub(super) const WRITE_CLOSED: u8 = 3;

/// What its host sends after the guest has closed its side.
pub(super) const FINAL_BYTES: &[u8] = b"the last word";

/// The CIDs of the machines: vsock(7).
const HOST: u32 = 2;
const ANOTHER_GUEST: u32 = 4;

/// Thirty times what it takes on an idle machine without KVM.
const TEST_TIMEOUT: Duration = Duration::from_secs(240);

#[tokio::test]
async fn the_part_that_runs_in_a_guest() {
    if std::env::var_os(ROLE_VARIABLE).is_none() {
        return;
    }
    let all = async {
        let mut control = connect(HOST, CONTROL_PORT).await.unwrap();
        unused_port_times_out().await;
        let data = connect(HOST, DATA_PORT).await.unwrap();
        exchange(data, &mut control).await.unwrap();
        host_connects(&mut control).await.unwrap();
        other_peers_are_rejected(&mut control).await.unwrap();
    };
    timeout(TEST_TIMEOUT, all).await.unwrap();
}

async fn unused_port_times_out() {
    let error = connect(HOST, UNUSED_PORT).await.unwrap_err();
    // A kernel at the other end would refuse. This device does not answer, and
    // our kernel gives up after two seconds.
    assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}");
}

/// Sends and receives at once, closes its side, and then receives the final
/// bytes.
async fn exchange(mut data: UnixStream, control: &mut UnixStream) -> io::Result<()> {
    let (mut reader, mut writer) = data.split();
    let mut received = vec![0; SIZE];
    let sent = bytes(FROM_GUEST);
    let sending = async {
        writer.write_all(&sent).await?;
        writer.shutdown().await?;
        let error = writer.write_all(b"more").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        control.write_u8(WRITE_CLOSED).await
    };
    tokio::try_join!(reader.read_exact(&mut received), sending)?;
    assert!(received == bytes(FROM_HOST));
    let mut rest = Vec::new();
    data.read_to_end(&mut rest).await?;
    assert_eq!(rest, FINAL_BYTES);
    Ok(())
}

async fn host_connects(control: &mut UnixStream) -> io::Result<()> {
    let listener = VsockListener::bind()?;
    control.write_u32(listener.port()).await?;
    listener.accept_from(HOST).await?;
    control.write_u8(CONNECTED).await
}

async fn other_peers_are_rejected(control: &mut UnixStream) -> io::Result<()> {
    let listener = VsockListener::bind()?;
    control.write_u32(listener.port()).await?;
    tokio::select! {
        accepted = listener.accept_from(ANOTHER_GUEST) => panic!("the host is no guest: {accepted:?}"),
        ended = control.read_u8() => assert_eq!(ended?, 0),
    }
    control.write_u8(STILL_WAITING).await
}
