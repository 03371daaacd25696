//! Serves what the programs of a guest want of the network.

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use tokio::{
    sync::{Semaphore, mpsc, oneshot},
    task::JoinSet,
    time::sleep,
};
use vmcell_wire::{
    Channel, Outcome, Request,
    files::record::{self, Piece},
    limits::MAX_CAPTURED_PREFIXES,
    network::{Answer, NetworkRequest, Refusal, Target, Want},
};

use super::{
    HostName, NetworkPolicy, Verdict, Wanted,
    connecting::{WantedConnection, WantedTarget},
    decision::DenialReason,
    proxy,
    state::NetworkState,
};
use crate::{
    error::Error,
    port::Connection,
    printable,
    session::{OpenError, Session, Stream, StreamEvent},
};

/// The most connections that are decided about or open at once. Further ones wait in the
/// guest.
const MAX_SERVED: usize = 1024;

/// How long to wait for a stream when all are in use.
const FULL_DELAY: Duration = Duration::from_millis(100);

/// How many answers may wait for a guest that does not read them.
const MAX_ANSWERS: usize = 64;

/// Serves the network of a VM until its session ends. `ready` is told when the guest
/// takes connections, or at once if the policy is off.
pub(super) async fn serve(
    session: Arc<Session>,
    state: Arc<NetworkState>,
    ready: oneshot::Sender<Result<(), Error>>,
) {
    let mut ready = Some(ready);
    let mut policies = state.watch_policy();
    let permits = Arc::new(Semaphore::new(MAX_SERVED));
    let mut connections = JoinSet::new();
    loop {
        let policy = policies.borrow_and_update().clone();
        if policy.is_off() {
            tell(&mut ready, Ok(()));
            if policies.changed().await.is_err() {
                return;
            }
            continue;
        }
        let prefixes = prefixes(&policy);
        let request = Request::Network(NetworkRequest::Capture {
            prefixes: &prefixes,
        });
        let stream = match session.open(&request) {
            Ok(stream) => stream,
            Err(OpenError::Paused) => {
                session.pauses().running().await;
                continue;
            }
            Err(OpenError::Full) => {
                // Nothing reports that a stream has ended.
                sleep(FULL_DELAY).await;
                continue;
            }
            Err(error) => return tell(&mut ready, Err(open_error(&session, error))),
        };
        let mut capture = Capture {
            session: &session,
            state: &state,
            permits: &permits,
            connections: &mut connections,
        };
        let end = tokio::select! {
            end = capture.run(stream, &mut ready) => end,
            () = until_other(&mut policies, &prefixes) => CaptureEnd::PolicyChanged,
        };
        match end {
            CaptureEnd::PolicyChanged => {}
            // There is a new link, or the session is over and `open` fails.
            CaptureEnd::LinkLost => {}
            CaptureEnd::Failed(error) => {
                tracing::warn!(%error, "the guest does not take connections any more");
                return tell(&mut ready, Err(error));
            }
        }
    }
}

/// Why a capture has ended.
#[derive(Debug)]
enum CaptureEnd {
    PolicyChanged,
    LinkLost,
    Failed(Error),
}

fn tell(ready: &mut Option<oneshot::Sender<Result<(), Error>>>, result: Result<(), Error>) {
    if let Some(ready) = ready.take() {
        // Fails if nobody waits for it any more.
        let _ = ready.send(result);
    }
}

fn open_error(session: &Session, error: OpenError) -> Error {
    match error {
        OpenError::Unsupported(feature) => Error::Unsupported {
            feature: feature.names().next().unwrap_or("the request"),
            agent: session.peer().build.clone(),
        },
        other => Error::Transport(format!("{other:?}")),
    }
}

/// Returns the addresses that the guest is to take besides public ones.
fn prefixes(policy: &NetworkPolicy) -> Vec<u8> {
    let prefixes = policy.special_prefixes().take(MAX_CAPTURED_PREFIXES);
    prefixes.flat_map(super::Prefix::to_wire).collect()
}

/// Waits until there is a policy for which the guest must take other connections.
async fn until_other(
    policies: &mut tokio::sync::watch::Receiver<Arc<NetworkPolicy>>,
    taken: &[u8],
) {
    let is_other = |policy: &Arc<NetworkPolicy>| policy.is_off() || prefixes(policy) != taken;
    if policies.wait_for(is_other).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// A stream on which the guest names what its programs want.
struct Capture<'a> {
    session: &'a Arc<Session>,
    state: &'a Arc<NetworkState>,
    permits: &'a Arc<Semaphore>,
    connections: &'a mut JoinSet<()>,
}

impl Capture<'_> {
    async fn run(
        &mut self,
        mut stream: Stream,
        ready: &mut Option<oneshot::Sender<Result<(), Error>>>,
    ) -> CaptureEnd {
        let input = stream.input();
        let (answers, mut answered) = mpsc::channel::<Answer>(MAX_ANSWERS);
        let answering = async {
            let mut record = Vec::new();
            while let Some(answer) = answered.recv().await {
                if record::encode(&mut record, &answer).is_err()
                    || !input.write(Bytes::from(std::mem::take(&mut record))).await
                {
                    break;
                }
            }
            std::future::pending::<CaptureEnd>().await
        };
        let reading = async {
            let mut reader = record::Reader::new();
            loop {
                let bytes = match stream.next().await {
                    Ok(StreamEvent::Data(Channel::Stdout, bytes)) => bytes,
                    Ok(StreamEvent::Closed(closing)) => return closed(&closing.outcome()),
                    Ok(_) => continue,
                    Err(_) => return CaptureEnd::LinkLost,
                };
                let mut rest = &bytes[..];
                loop {
                    let want = match reader.next(&mut rest) {
                        Ok(Some(Piece::Message(message))) => record::decode::<Want<'_>>(message),
                        Ok(None) => break,
                        Ok(Some(Piece::Raw(_))) | Err(_) => {
                            return CaptureEnd::Failed(Error::unexpected_reply());
                        }
                    };
                    match want {
                        Ok(Want::Ready) => tell(ready, Ok(())),
                        Ok(want) if want.is_valid() => self.serve(want, &answers).await,
                        Ok(_) | Err(_) => return CaptureEnd::Failed(Error::unexpected_reply()),
                    }
                }
            }
        };
        tokio::select! {
            end = reading => end,
            end = answering => end,
        }
    }

    async fn serve(&mut self, want: Want<'_>, answers: &mpsc::Sender<Answer>) {
        while self.connections.try_join_next().is_some() {}
        match want {
            Want::Lookup { ticket, name } => {
                let answer = match self.may_look_up(name) {
                    true => Answer::Allow { ticket },
                    false => Answer::Refuse {
                        ticket,
                        refusal: Refusal::NotAllowed,
                    },
                };
                // Fails only if the capture ends.
                let _ = answers.send(answer).await;
            }
            Want::Connect {
                ticket,
                target,
                port,
            } => {
                let Ok(permit) = self.permits.clone().acquire_owned().await else {
                    return;
                };
                let wanted = WantedConnection {
                    target: target_of(target),
                    port,
                };
                let (session, state) = (self.session.clone(), self.state.clone());
                let answers = answers.clone();
                self.connections.spawn(async move {
                    if let Err(refusal) = serve_connection(wanted, ticket, &session, &state).await {
                        let _ = answers.send(Answer::Refuse { ticket, refusal }).await;
                    }
                    drop(permit);
                });
            }
            // One of a newer agent.
            _ => {}
        }
    }

    /// Decides whether there is a host with this name for the guest. Nothing is sent to
    /// anybody.
    fn may_look_up(&self, name: &str) -> bool {
        let wanted = || Wanted::Lookup {
            name: printable(name.as_bytes()).into_owned(),
        };
        let reason = match HostName::new(name) {
            Ok(name) if self.state.policy().allows_lookup(&name) => return true,
            Ok(_) => DenialReason::NoRule,
            Err(_) => DenialReason::NotAName,
        };
        self.state.decided(wanted(), Verdict::Denied(reason));
        false
    }
}

/// Connects in place of a program, and relays until the connection ends. Returns why it
/// was refused.
async fn serve_connection(
    wanted: WantedConnection,
    ticket: u32,
    session: &Session,
    state: &Arc<NetworkState>,
) -> Result<(), Refusal> {
    if state.policy().has_proxy() && proxy::is_wanted(&wanted) {
        let connection = accept(session, ticket)?.await;
        let served = match connection {
            Ok(connection) => proxy::serve(connection, state).await,
            Err(error) => Err(error),
        };
        if let Err(error) = served {
            tracing::debug!(%error, "a connection to the proxy broke");
        }
        return Ok(());
    }
    let upstream = wanted.connect(state).await?;
    let accepting = accept(session, ticket)?;
    upstream
        .relay(async { Ok((accepting.await?, Vec::new())) })
        .await;
    Ok(())
}

/// Accepts the connection of a program, which waits for it. What is returned is the
/// connection as soon as the program has it.
fn accept(
    session: &Session,
    ticket: u32,
) -> Result<impl Future<Output = io::Result<Connection>>, Refusal> {
    let request = Request::Network(NetworkRequest::Accept { ticket });
    // Fails if there are too many streams: the program is not to wait for one.
    let mut stream = session.open(&request).map_err(|_| Refusal::Limit)?;
    Ok(async move {
        match stream.next_except_output().await {
            Ok(StreamEvent::Connected) => Ok(Connection::new(stream)),
            Ok(_) => Err(io::Error::other("the program has given up")),
            Err(error) => Err(io::Error::other(error.to_string())),
        }
    })
}

fn target_of(target: Target<'_>) -> WantedTarget {
    match target {
        Target::Name(name) => WantedTarget::from_name(name),
        Target::V4(octets) => WantedTarget::Address(Ipv4Addr::from(octets).into()),
        Target::V6(octets) => WantedTarget::Address(Ipv6Addr::from(octets).into()),
        _ => WantedTarget::NotAName("unknown".to_owned()),
    }
}

fn closed(outcome: &Outcome<'_>) -> CaptureEnd {
    CaptureEnd::Failed(match outcome {
        Outcome::Failed(failure) => Error::Control {
            doing: "take connections of its programs",
            reason: printable(failure.text.as_bytes()).into_owned(),
        },
        _ => Error::unexpected_reply(),
    })
}
