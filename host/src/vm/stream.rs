use std::{
    fmt,
    future::{Future, poll_fn},
    ops::Deref,
    pin::Pin,
    task::{Context, Poll, ready},
};

use super::Vm;
use crate::{
    error::Error,
    session::{LinkError, Stream, StreamEvent},
};

/// A stream of a VM whose errors are those of the caller.
pub(crate) struct VmStream {
    stream: Stream,
    vm: Vm,
    /// Finds out why the link was lost, which takes a moment.
    explanation: Option<Pin<Box<dyn Future<Output = Error> + Send + Sync>>>,
}

impl VmStream {
    pub(crate) fn new(stream: Stream, vm: Vm) -> Self {
        Self {
            stream,
            vm,
            explanation: None,
        }
    }

    /// Returns its VM.
    pub(crate) fn vm(&self) -> &Vm {
        &self.vm
    }

    /// Returns the next event: see [`Stream::next`].
    pub(crate) fn poll_next(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<StreamEvent, Error>> {
        self.poll_with(context, Stream::poll_next)
    }

    /// Waits for the next event, without data and gaps of the outputs.
    ///
    /// Cancel safe.
    pub(crate) async fn next_except_output(&mut self) -> Result<StreamEvent, Error> {
        poll_fn(|context| self.poll_with(context, Stream::poll_next_except_output)).await
    }

    fn poll_with(
        &mut self,
        context: &mut Context<'_>,
        poll: fn(&mut Stream, &mut Context<'_>) -> Poll<Result<StreamEvent, LinkError>>,
    ) -> Poll<Result<StreamEvent, Error>> {
        if self.explanation.is_none() {
            match ready!(poll(&mut self.stream, context)) {
                Ok(event) => return Poll::Ready(Ok(event)),
                Err(lost) => {
                    let vm = self.vm.clone();
                    self.explanation = Some(Box::pin(async move { vm.explain(lost).await }));
                }
            }
        }
        let Some(explanation) = &mut self.explanation else {
            return Poll::Pending;
        };
        let error = ready!(explanation.as_mut().poll(context));
        self.explanation = None;
        Poll::Ready(Err(error))
    }
}

impl Deref for VmStream {
    type Target = Stream;

    fn deref(&self) -> &Stream {
        &self.stream
    }
}

impl fmt::Debug for VmStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.stream.fmt(f)
    }
}
