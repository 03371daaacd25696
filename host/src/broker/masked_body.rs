use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::http::{HeaderMap, HeaderValue};
use tokio::time::{Sleep, sleep};

use crate::redaction::{MASK, Redactor, SecretSearch, SecretSet, Thoroughness};

/// The body of an answer, with the values of secrets masked. Its length is that of the
/// answer.
pub(super) struct MaskedBody<B> {
    body: B,
    redactor: Redactor,
    secrets: Arc<SecretSet>,
    /// When what may be the beginning of a value is held back no longer.
    release: Option<Pin<Box<Sleep>>>,
    trailers: Option<HeaderMap>,
    has_ended: bool,
}

/// How long the possible beginning of a value is held back. Who sends a value sends it in
/// one piece, or means to hide it.
const HOLD_BACK_TIME: Duration = Duration::from_millis(100);

impl<B> MaskedBody<B> {
    pub(super) fn new(body: B, secrets: Arc<SecretSet>) -> Self {
        Self {
            body,
            redactor: Redactor::new(secrets.clone(), 0, Thoroughness::Fast),
            secrets,
            release: None,
            trailers: None,
            has_ended: false,
        }
    }

    /// Returns what is left when no more data comes.
    fn last_frame(&mut self) -> Option<Frame<Bytes>> {
        self.release = None;
        if self.redactor.holds_back() {
            return Some(Frame::data(self.redactor.release().bytes));
        }
        self.trailers.take().map(Frame::trailers)
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for MaskedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = &mut *self;
        loop {
            if this.has_ended {
                return Poll::Ready(this.last_frame().map(Ok));
            }
            match Pin::new(&mut this.body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(bytes) => {
                        let shown = this.redactor.feed(bytes).bytes;
                        this.release = match this.redactor.holds_back() {
                            true => Some(Box::pin(sleep(HOLD_BACK_TIME))),
                            false => None,
                        };
                        if !shown.is_empty() {
                            return Poll::Ready(Some(Ok(Frame::data(shown))));
                        }
                    }
                    Err(frame) => {
                        // They end a body.
                        this.has_ended = true;
                        this.trailers = frame.into_trailers().ok();
                        if let Some(trailers) = &mut this.trailers {
                            mask_headers(trailers, &this.secrets);
                        }
                    }
                },
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(None) => this.has_ended = true,
                Poll::Pending => {
                    let release = this.release.as_mut();
                    let is_due = release.is_some_and(|it| it.as_mut().poll(context).is_ready());
                    if !is_due {
                        return Poll::Pending;
                    }
                    this.release = None;
                    let hides = this.redactor.hides_held();
                    let held = this.redactor.release().bytes;
                    let shown = match hides {
                        true => Bytes::from(vec![MASK; held.len()]),
                        false => held,
                    };
                    return Poll::Ready(Some(Ok(Frame::data(shown))));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        let is_empty = !self.redactor.holds_back() && self.trailers.is_none();
        is_empty && (self.has_ended || self.body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        match self.redactor.holds_back() {
            true => SizeHint::default(),
            false => self.body.size_hint(),
        }
    }
}

/// Masks the values of secrets in headers, and removes headers whose names have one.
pub(super) fn mask_headers(headers: &mut HeaderMap, secrets: &Arc<SecretSet>) {
    let names: Vec<_> = headers.keys().cloned().collect();
    for name in names {
        if masked(name.as_str().as_bytes(), secrets).is_some() {
            headers.remove(&name);
        }
    }
    for value in headers.values_mut() {
        if let Some(masked) = masked(value.as_bytes(), secrets) {
            // Asterisks are valid in all headers.
            *value = HeaderValue::from_bytes(&masked).unwrap_or(HeaderValue::from_static("*"));
        }
    }
}

/// Returns the text with the values of secrets masked, or `None` if it has none.
fn masked(text: &[u8], secrets: &Arc<SecretSet>) -> Option<Vec<u8>> {
    let found = SecretSearch::new(secrets.clone(), Thoroughness::Fast).search(text, 0);
    if found.is_empty() {
        return None;
    }
    let mut masked = text.to_vec();
    let index = |at: u64| usize::try_from(at).map_or(text.len(), |at| at.min(text.len()));
    for range in found {
        masked[index(range.start)..index(range.end)].fill(MASK);
    }
    Some(masked)
}

#[cfg(test)]
mod tests {
    use std::{collections::VecDeque, convert::Infallible};

    use http_body_util::BodyExt as _;

    use super::*;

    const VALUE: &str = "correct-horse/battery+staple=42";

    fn secrets() -> Arc<SecretSet> {
        Arc::new(SecretSet::new([VALUE.as_bytes()], []))
    }

    /// A body of these frames, which pauses at `None`. At the first one it is polled again
    /// when the time is over, and at the second one there is still nothing.
    struct Frames(VecDeque<Option<Frame<Bytes>>>);

    impl Body for Frames {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            match self.0.pop_front() {
                None => Poll::Ready(None),
                // The timer wakes whoever polls.
                Some(None) => Poll::Pending,
                Some(Some(frame)) => Poll::Ready(Some(Ok(frame))),
            }
        }
    }

    fn body(pieces: &[Option<&str>]) -> MaskedBody<Frames> {
        let data = |piece: &str| Frame::data(Bytes::from(piece.to_owned()));
        let frames = pieces.iter().map(|piece| piece.map(data));
        MaskedBody::new(Frames(frames.collect()), secrets())
    }

    async fn text(body: MaskedBody<Frames>) -> String {
        let bytes = body.collect().await.unwrap().to_bytes();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[tokio::test]
    async fn a_value_is_masked_across_pieces_and_the_length_stays() {
        let (first, rest) = VALUE.split_at(7);
        let stars = "*".repeat(VALUE.len());
        let masked = text(body(&[Some("a "), Some(first), Some(rest), Some(" b")])).await;
        assert_eq!(masked, format!("a {stars} b"));
        // What only begins like it comes whole.
        assert_eq!(
            text(body(&[Some("a corr"), Some("ode")])).await,
            "a corrode"
        );
        assert_eq!(
            text(body(&[Some("a "), Some(first)])).await,
            format!("a {first}")
        );
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_be_a_beginning_is_not_held_back_for_ever() {
        let shown = text(body(&[Some("it is c"), None, None, Some("onnected")])).await;
        assert_eq!(shown, "it is connected");
        // Up to the half is shown, lest masks tell who guesses that a guess is right.
        for (length, shown_length) in [(7, 7), (15, 15), (16, 0), (30, 0)] {
            let (first, rest) = VALUE.split_at(length);
            let shown = text(body(&[Some(first), None, None, Some(rest)])).await;
            let masked = "*".repeat(VALUE.len() - shown_length);
            assert_eq!(shown, format!("{}{masked}", &VALUE[..shown_length]));
        }
    }

    #[tokio::test]
    async fn trailers_follow_what_was_held_back_and_are_masked() {
        let mut trailers = HeaderMap::new();
        trailers.insert("status", HeaderValue::from_str(VALUE).unwrap());
        let frames = [Frame::data(Bytes::from("corr")), Frame::trailers(trailers)];
        let body = MaskedBody::new(Frames(frames.into_iter().map(Some).collect()), secrets());
        let collected = body.collect().await.unwrap();
        assert_eq!(
            collected.trailers().unwrap()["status"],
            "*".repeat(VALUE.len())
        );
        assert_eq!(collected.to_bytes(), "corr");
    }

    #[test]
    fn headers_are_masked_and_those_named_by_a_value_are_removed() {
        let secrets = Arc::new(SecretSet::new([&b"s3cret-value"[..]], []));
        let mut headers = HeaderMap::new();
        headers.insert(
            "location",
            HeaderValue::from_static("/?key=s3cret-value&a=b"),
        );
        headers.insert("s3cret-value", HeaderValue::from_static("x"));
        headers.insert("other", HeaderValue::from_static("x"));
        mask_headers(&mut headers, &secrets);
        assert_eq!(headers["location"], "/?key=************&a=b");
        assert_eq!(
            (headers.len(), &headers["other"]),
            (2, &"x".parse().unwrap())
        );
    }
}
