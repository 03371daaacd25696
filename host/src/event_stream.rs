/// Implements [`futures_core::Stream`] for a type with a method `poll_event` and
/// a field `failed`. After an error the stream ends.
macro_rules! event_stream {
    ($stream:ty, $event:ty) => {
        impl futures_core::Stream for $stream {
            type Item = Result<$event, crate::error::Error>;

            fn poll_next(
                mut self: std::pin::Pin<&mut Self>,
                context: &mut std::task::Context<'_>,
            ) -> std::task::Poll<Option<Self::Item>> {
                if self.failed {
                    return std::task::Poll::Ready(None);
                }
                let event = std::task::ready!(self.poll_event(context));
                self.failed = event.is_err();
                std::task::Poll::Ready(event.transpose())
            }
        }
    };
}

pub(crate) use event_stream;
