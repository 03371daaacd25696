use rustix::io::Errno;
use vmcell_wire::{Failure, FailureKind, Outcome, Stage, StreamId, network::NetworkRequest};

use crate::{
    agent::Agent,
    link::{CaptureStream, LinkError, LinkSession, PortStream, Stream},
    process::raw_errno,
};

impl Agent {
    pub(crate) fn network(
        &mut self,
        session: &mut LinkSession,
        stream: StreamId,
        request: &NetworkRequest<'_>,
    ) -> Result<(), LinkError> {
        let caller = session.caller(stream);
        let opened = match request {
            NetworkRequest::Capture { prefixes } => {
                let network = &mut self.tasks.network;
                let begun = network.begin(caller, prefixes, &self.poller);
                begun
                    .map_err(capture_failure)
                    .map(|()| Stream::Capture(CaptureStream::new(caller, session.window())))
            }
            NetworkRequest::Accept { ticket } => {
                let socket = self.tasks.network.take_connection(*ticket);
                let connections = &mut self.tasks.connections;
                socket.ok_or_else(gone).and_then(|socket| {
                    let connection = connections.adopt(socket, caller, &self.poller)?;
                    let stream = PortStream::new(caller, connection, session.window());
                    Ok(Stream::Port(stream))
                })
            }
            _ => {
                let text = "the agent does not know this request";
                Err(Failure::new(FailureKind::Unsupported, Stage::Request, text))
            }
        };
        match opened {
            Ok(opened) => {
                session.streams.insert(stream, opened);
                Ok(())
            }
            Err(failure) => session.close(stream, &Outcome::Failed(failure)),
        }
    }
}

fn gone() -> Failure<'static> {
    let text = "the program has given up the connection";
    Failure::new(FailureKind::NotFound, Stage::Dial, text)
}

fn capture_failure(errno: Errno) -> Failure<'static> {
    if errno == Errno::NOSYS {
        let text = "connections cannot be taken: the guest's kernel has no bpf(2), which \
                    CONFIG_BPF_SYSCALL adds";
        return Failure::new(FailureKind::Unsupported, Stage::Request, text);
    }
    let text = "connections cannot be taken";
    Failure::from_errno(raw_errno(errno), Stage::Request, text)
}
